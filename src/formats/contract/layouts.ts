/** One tensor of a layout contract: `audio_signal: [B, n_mels, T]`. */
export interface Layout {
  /** null where the text has only dimensions. */
  readonly name: string | null;
  /** As written: symbols, numbers, sums (`vocab + 1 + durations`). */
  readonly dims: readonly string[];
}

/** Longer texts are prose. */
const LONGEST = 10_000;

/**
 * Reads the free text in which exporters describe tensors: every `[…]`, with the word before it as the tensor's name. Best effort: what is not
 * understood is skipped: the text is not binding.
 */
export function parseLayouts(text: string): readonly Layout[] {
  const found = text
    .slice(0, LONGEST)
    .matchAll(/(?:([A-Za-z_][\w./-]{0,200})\s{0,9}[:=]?\s{0,9})?\[([^[\]]{0,500})\]/g);
  return [...found].map(([, name, dims = '']) => ({
    name: name ?? null,
    dims: dims.trim() === '' ? [] : dims.split(',').map((dim) => dim.trim()),
  }));
}

/** The role of an axis, by its name. */
export type AxisRole = 'batch' | 'time' | 'tokens';

/** `B` and `batch` are the batch; `T`, `T_out` and `time` are time; `U` and `token_len` are tokens. undefined for any other word. */
export function roleOfAxisName(word: string): AxisRole | undefined {
  if (/^(?:b|n|bs|batch(?:_?size)?)$/i.test(word)) return 'batch';
  if (/^(?:t|t_\w+|time\w*|frames?|n_frames|t_len|seq(?:_len)?|.*_time)$/i.test(word)) return 'time';
  if (/^(?:u|u_\w+|tokens?|token_len|target_len(?:gth)?|labels?_len)$/i.test(word)) return 'tokens';
  return undefined;
}

/** Words of a layout that a model names too, on another axis. Only what either side names once is compared: `B` and `batch` are one name. */
export function movedAxes(
  dims: readonly string[],
  shape: readonly (number | string | null)[],
): readonly string[] {
  const nameOf = (word: number | string | null): string | null =>
    typeof word !== 'string' || /^\d+$/.test(word) ? null : (roleOfAxisName(word) ?? word.toLowerCase());
  const [layout, model] = [dims.map(nameOf), shape.map(nameOf)];
  return dims.filter((_, axis) => {
    const name = layout[axis] ?? null;
    const isOnce = [layout, model].every((names) => names.filter((each) => each === name).length === 1);
    return name !== null && isOnce && model.indexOf(name) !== axis;
  });
}
