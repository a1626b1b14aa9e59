import { StringDecoder } from 'node:string_decoder';
import { LONGEST_LINE } from './log-lines.js';

/** Cuts one stream into lines as they become whole; the rest of the last line comes at its end. */
export function onLines(stream: NodeJS.ReadableStream, take: (lines: readonly string[]) => void): void {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  stream.on('data', (chunk: Buffer) => {
    const parts = (rest + decoder.write(chunk)).split('\n');
    rest = (parts.pop() ?? '').slice(0, LONGEST_LINE);
    if (parts.length > 0) take(parts);
  });
  stream.on('end', () => {
    rest += decoder.end();
    if (rest !== '') take([rest]);
    rest = '';
  });
}
