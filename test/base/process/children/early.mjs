import { writeSync } from 'node:fs';

writeSync(2, 'the library cannot be mapped\n');
if (process.env.EARLY === 'kill') process.kill(process.pid, 'SIGKILL');
else process.exit(3);
