import { StringDecoder } from 'node:string_decoder';
import { LONGEST_LINE } from './log/lines.js';

/** Cuts text that comes in pieces into lines as they become whole; the rest of the last line comes at its end. */
export class LineCutter {
  readonly #take: (lines: readonly string[]) => void;
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';

  constructor(take: (lines: readonly string[]) => void) {
    this.#take = take;
  }

  write(piece: Buffer): void {
    const parts = (this.#rest + this.#decoder.write(piece)).split('\n');
    this.#rest = (parts.pop() ?? '').slice(0, LONGEST_LINE);
    if (parts.length > 0) this.#take(parts);
  }

  end(): void {
    const rest = this.#rest + this.#decoder.end();
    this.#rest = '';
    if (rest !== '') this.#take([rest]);
  }
}

/** Cuts one stream into lines. */
export function onLines(stream: NodeJS.ReadableStream, take: (lines: readonly string[]) => void): void {
  const cutter = new LineCutter(take);
  stream.on('data', (chunk: Buffer) => cutter.write(chunk));
  stream.on('end', () => cutter.end());
}
