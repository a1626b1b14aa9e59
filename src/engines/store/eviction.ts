/** An engine as eviction sees it. */
export interface Evictable {
  readonly identity: string;
  readonly bytes: number;
  /** Milliseconds since 1970. */
  readonly lastUsed: number;
  /** In use, or being built again: never taken. */
  readonly held: boolean;
}

export interface EvictionPlan {
  /** The least recently used first. */
  readonly victims: readonly Evictable[];
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** Bytes over the limit that stay because they are in use. */
  readonly excessBytes: number;
}

/** Which engines go so that the rest fits into `limit` bytes: those used least recently, except what is held. Ties go by identity. */
export function chooseVictims(engines: readonly Evictable[], limit: number): EvictionPlan {
  const bytesBefore = engines.reduce((sum, { bytes }) => sum + bytes, 0);
  let bytesAfter = bytesBefore;
  const victims: Evictable[] = [];
  const byAge = engines
    .filter(({ held }) => !held)
    .sort((a, b) => a.lastUsed - b.lastUsed || (a.identity < b.identity ? -1 : 1));
  for (const engine of byAge) {
    if (bytesAfter <= limit) break;
    victims.push(engine);
    bytesAfter -= engine.bytes;
  }
  return { victims, bytesBefore, bytesAfter, excessBytes: Math.max(0, bytesAfter - limit) };
}
