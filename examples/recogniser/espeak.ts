import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The bytes of a phrase depend on the version: the test set is that of this one. */
export const ESPEAK_VERSION = '1.51';
/** Samples a second of every voice. */
export const ESPEAK_RATE = 22_050;
/** Before the samples in what espeak-ng writes; the sizes in it are those of an endless stream. */
const HEADER_BYTES = 44;

export interface Speech {
  readonly text: string;
  readonly voice: string;
  /** Words a minute. */
  readonly speed: number;
  /** 0 to 99. */
  readonly pitch: number;
}

/** The version of the espeak-ng on the path; undefined where there is none. */
export async function espeakVersion(): Promise<string | undefined> {
  try {
    const { stdout } = await run('espeak-ng', ['--version']);
    return /eSpeak NG text-to-speech: (\S+)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}

/** Speaks a phrase in a process of its own, since espeak-ng carries state from one phrase to the next: samples from -1 to 1, at ESPEAK_RATE. */
export async function speak({ text, voice, speed, pitch }: Speech): Promise<Float32Array> {
  const { stdout } = await run(
    'espeak-ng',
    ['-v', voice, '-s', String(speed), '-p', String(pitch), '--stdout', text],
    { encoding: 'buffer', maxBuffer: 1 << 26 },
  );
  const count = Math.max(0, Math.floor((stdout.length - HEADER_BYTES) / 2));
  return Float32Array.from({ length: count }, (_, at) => stdout.readInt16LE(HEADER_BYTES + 2 * at) / 2 ** 15);
}
