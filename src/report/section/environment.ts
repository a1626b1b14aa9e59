import { markup } from '../markup.js';
import { code, facts, type SectionFacts, table } from '../parts.js';
import type { ForgeResult } from '../result.js';

/** What the run ran on. */
export function environmentSection({ environment }: Pick<ForgeResult, 'environment'>): SectionFacts | null {
  if (environment.length === 0) return null;
  return {
    id: 'environment',
    title: 'Environment',
    lead: 'The machine and the versions that this result belongs to.',
    body: facts(environment.map(({ name, text }) => [name, text] as const)),
  };
}

/** The command that repeats the run, and where the run left its files. */
export function repeatSection({
  repeat,
  files,
  runRoot,
}: Pick<ForgeResult, 'repeat' | 'files' | 'runRoot'>): SectionFacts | null {
  if (repeat === null && files.length === 0) return null;
  return {
    id: 'repeat',
    title: 'Repeat it',
    lead: repeat === null ? 'A program called the library.' : 'The command of this run. A click selects it.',
    body: [
      repeat !== null && markup`<pre class="command" tabindex="0"><code>${repeat}</code></pre>`,
      files.length > 0 &&
        table(
          `Files of the run, in ${runRoot}`,
          [{ title: 'file' }, { title: 'what it is' }],
          files.map((file) => [code(file.path), file.what]),
        ),
    ],
  };
}
