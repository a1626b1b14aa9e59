import { writeFileSync } from 'node:fs';
import { writeFailed } from '../../../base/files/publish.js';
import { ledgerPath, readLedger } from '../partial.js';
import type { ByteRange, ObjectFacts } from './objects.js';
import { partsOf } from './transfer.js';

/** Consecutive parts that one request asks for while the line is fast: a request costs the server and us more than it brings in time. */
const PARTS_OF_A_STRETCH = 4;

/** Parts that follow each other, asked for at once. */
export interface Stretch extends ByteRange {
  readonly firstPart: number;
}

/** Which bytes of a file that is being downloaded have arrived, and which nobody has asked for yet; whole parts are noted in the file's ledger. */
export class Arrivals {
  readonly #path: string;
  readonly #ledger: { readonly sha256: string; readonly etag: string; readonly bytes: number };
  readonly #parts: readonly ByteRange[];
  /** Up to where each part has arrived. */
  readonly #ends: number[];
  readonly #whole: Set<number>;
  #nextPart = 0;
  #frontPart = 0;

  /** Goes on from the ledger beside `path` when it is of this very object. */
  constructor(path: string, { etag, bytes }: ObjectFacts, sha256: string) {
    this.#path = path;
    this.#ledger = { sha256, etag, bytes };
    this.#parts = partsOf(bytes);
    const ledger = readLedger(path);
    const fits = ledger?.etag === etag && ledger.bytes === bytes && ledger.sha256 === sha256;
    this.#whole = new Set(fits ? ledger.parts : []);
    this.#ends = this.#parts.map(({ first, last }, part) => (this.#whole.has(part) ? last + 1 : first));
  }

  get parts(): number {
    return this.#parts.length;
  }

  /** The bytes of all parts that are whole. */
  get wholeBytes(): number {
    return [...this.#whole].reduce((sum, part) => {
      const { first, last } = this.#parts[part] ?? { first: 0, last: -1 };
      return sum + last + 1 - first;
    }, 0);
  }

  /** What to ask for next, for one caller alone: parts that follow each other, or one part where many connections share the work. */
  next(isShared: boolean): Stretch | undefined {
    while (this.#whole.has(this.#nextPart)) this.#nextPart++;
    const firstPart = this.#nextPart;
    const start = this.#parts[firstPart];
    if (start === undefined) return undefined;
    let last = start.last;
    for (let count = 0; count < (isShared ? 1 : PARTS_OF_A_STRETCH); count++) {
      const part = this.#parts[this.#nextPart];
      if (part === undefined || this.#whole.has(this.#nextPart)) break;
      last = part.last;
      this.#nextPart++;
    }
    return { firstPart, first: start.first, last };
  }

  /** Notes that a stretch has arrived before `end`. Gives the bytes of parts that are whole by that. Throws TF_WRITE_FAILED. */
  reached({ firstPart }: Stretch, end: number): number {
    let bytes = 0;
    for (let part = firstPart; ; part++) {
      const range = this.#parts[part];
      if (range === undefined || range.first >= end) return bytes;
      if (this.#whole.has(part)) continue;
      this.#ends[part] = Math.min(end, range.last + 1);
      if (end <= range.last) return bytes;
      this.#whole.add(part);
      this.#writeLedger();
      bytes += range.last + 1 - range.first;
    }
  }

  /** Every byte before this one is in the file. */
  get front(): number {
    while (this.#whole.has(this.#frontPart)) this.#frontPart++;
    return this.#ends[this.#frontPart] ?? this.#ledger.bytes;
  }

  /** Losing it costs a part, so it is written plainly and not synced. */
  #writeLedger(): void {
    try {
      writeFileSync(ledgerPath(this.#path), JSON.stringify({ ...this.#ledger, parts: [...this.#whole] }));
    } catch (cause) {
      throw writeFailed(this.#path, cause);
    }
  }
}
