import { z } from 'zod';

/**
 * One thing `doctor` reports. `problem` is kept for what makes trtforge itself unusable; what only keeps some command from
 * working is a `warning`; what is merely absent is `info`.
 */
export const findingSchema = z.object({
  id: z.string(),
  topic: z.enum(['machine', 'gpu', 'tensorrt', 'versions', 'onnxruntime', 'store']),
  severity: z.enum(['ok', 'info', 'warning', 'problem']),
  what: z.string(),
  /** The remedy; null when none is needed. */
  remedy: z.string().nullable(),
});
export interface Finding extends z.infer<typeof findingSchema> {}

/** Makes the findings of one topic. */
export function findingsOf(topic: Finding['topic']) {
  const finding =
    (severity: Finding['severity']) =>
    (id: string, what: string, remedy: string | null = null): Finding => ({
      id: `${topic}.${id}`,
      topic,
      severity,
      what,
      remedy,
    });
  return {
    ok: finding('ok'),
    info: finding('info'),
    warning: finding('warning'),
    problem: finding('problem'),
  };
}

/** Bytes as findings write them: `23.4 GiB`, `7.8 MiB`. */
export function gibibytes(bytes: number): string {
  return bytes < 2 ** 30 ? `${(bytes / 2 ** 20).toFixed(1)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
