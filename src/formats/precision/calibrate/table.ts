import { TrtforgeError } from '../../../errors.js';
import type { CalibratedRanges, TensorRange } from './ranges.js';

/** Codes of INT8 on one side of zero: a table has the size of one. */
const CODES = 127;
/** As many as a model has tensors. */
const MOST_ENTRIES = 500_000;
/** A version whose tables every TensorRT with calibrators knows by its form; those read only their own number, which users write over it. */
const VERSION = 8602;

/**
 * Reads TensorRT's table (`TRT-8602-EntropyCalibration2`, then `name: 3c010a14`, the scale amax / 127 as a big-endian float32; ModelOpt reads it too) or
 * ONNX Runtime's `calibration.cache` (`name value`, the larger of both extremes). Names may hold blanks and colons. The extremes are not in either; they
 * are taken as symmetric. Throws TF_CALIBRATION_INVALID with the line.
 */
export function parseTable(path: string, text: string): CalibratedRanges {
  // With a first line, and nothing after the last line end.
  const lines = text.split('\n', MOST_ENTRIES + 3);
  assertEntries(path, lines.length - 2);
  const isTensorRt = /^TRT-\d+-\w+/.test(lines[0] ?? '');
  const ranges = new Map<string, TensorRange>();
  for (const [index, whole] of lines.entries()) {
    const line = whole.replace(/\r$/, '');
    if (line.trim() === '' || (isTensorRt && index === 0)) continue;
    const entry = isTensorRt ? tensorRtEntry(line) : ortEntry(line);
    if (entry === undefined || !(Number.isFinite(entry.amax) && entry.amax >= 0) || entry.name === '')
      throw new TrtforgeError(
        'TF_CALIBRATION_INVALID',
        `Line ${index + 1} of ${path} is not a valid entry of a calibration table.`,
        {
          remedy: isTensorRt
            ? 'An entry is NAME: and the eight hexadecimal digits of a scale.'
            : 'Tables of TensorRT begin with TRT-VERSION-ALGORITHM; an entry of ONNX Runtime is NAME and a magnitude; caches of trtforge are JSON.',
          details: { line: index + 1 },
        },
      );
    const { name, amax } = entry;
    ranges.set(name, { min: -amax, max: amax, amax });
  }
  if (ranges.size > 0) return ranges;
  throw new TrtforgeError('TF_CALIBRATION_INVALID', `${path} has no entry of a calibration table.`);
}

/** Throws TF_CALIBRATION_INVALID for more tensors than a model may have. */
export function assertEntries(path: string, count: number): void {
  if (count <= MOST_ENTRIES) return;
  throw new TrtforgeError(
    'TF_CALIBRATION_INVALID',
    `${path} has ranges of more than ${MOST_ENTRIES} tensors.`,
  );
}

function tensorRtEntry(line: string): { name: string; amax: number } | undefined {
  const [, name, hex] = /^(.*): ([0-9a-fA-F]{8})\s*$/.exec(line) ?? [];
  if (name === undefined || hex === undefined) return undefined;
  return { name, amax: Buffer.from(hex, 'hex').readFloatBE(0) * CODES };
}

function ortEntry(line: string): { name: string; amax: number } | undefined {
  const [, name, value] = /^(.*) (\S+)\s*$/.exec(line) ?? [];
  return name === undefined || value === undefined ? undefined : { name, amax: Number(value) };
}

/** TensorRT's table of the ranges. Throws TF_CALIBRATION_INVALID for a name that a line cannot hold. */
export function tableText(ranges: CalibratedRanges, method: string): string {
  const algorithm = method === 'max' ? 'MinMaxCalibration' : 'EntropyCalibration2';
  const lines = [...ranges].map(([name, { amax }]) => {
    if (/[\r\n]/.test(name))
      throw new TrtforgeError(
        'TF_CALIBRATION_INVALID',
        `The name ${JSON.stringify(name)} has a line end, which no table can hold.`,
      );
    const scale = Buffer.alloc(4);
    scale.writeFloatBE(amax / CODES);
    return `${name}: ${scale.toString('hex')}`;
  });
  return `${[`TRT-${VERSION}-${algorithm}`, ...lines].join('\n')}\n`;
}
