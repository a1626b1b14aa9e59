import { ExitCode, TrtforgeError } from '../../errors.js';
import { type FleetStore, LARGEST_RECORD } from './fleet-store.js';
import { type FleetJob, type WorkRecord, workRecordSchema } from './plan-schema.js';

/** Whether an engine that is there counts: what has a policy has to be the build, by its time, that passed that very one and was kept. */
export const hasPassed = ({ gate }: Pick<FleetJob, 'gate'>, record: WorkRecord | null, buildMs: number) =>
  gate === null ||
  (record?.gate?.policy === gate.digest &&
    ['pass', 'warn'].includes(record.gate.outcome) &&
    record.check !== 'fail' &&
    record.exitCode === ExitCode.pass &&
    record.engine?.buildMs === buildMs);

export const recordKey = (identity: string): string => `records/${identity}.json`;

/** Keeps a record; that of a machine that could do nothing replaces no other. */
export async function keepRecord(record: WorkRecord, store: FleetStore): Promise<void> {
  const couldNot = ({ exitCode }: WorkRecord) => exitCode === ExitCode.machineCannot;
  const { record: earlier } = couldNot(record) ? await recordOf(record.identity, store) : { record: null };
  if (earlier === null || couldNot(earlier))
    await store.write(recordKey(record.identity), record, LARGEST_RECORD);
}

/** A task's last work on an engine; null where there was none, or where the record does not count, and why: the work is then done again. */
export interface LastWork {
  readonly record: WorkRecord | null;
  readonly fault: string | null;
}

/** Throws TF_REMOTE_… where the store does not answer. */
export async function recordOf(identity: string, store: FleetStore): Promise<LastWork> {
  try {
    const { document: record = null } =
      (await store.read(recordKey(identity), workRecordSchema, LARGEST_RECORD)) ?? {};
    if (record === null || record.identity === identity) return { record, fault: null };
    return { record: null, fault: `${store.address(recordKey(identity))} is the record of another engine.` };
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.exitCode !== ExitCode.badInput) throw error;
    return { record: null, fault: error.message };
  }
}
