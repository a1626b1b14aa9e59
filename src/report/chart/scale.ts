import { powerOfTen } from '../../base/text/quantity.js';

/** A map from a quantity to a place on an axis, 0 (start) to 1 (end), with the ticks to print along it. */
export interface Scale {
  /** Clamped to the axis: a value beyond an end sits at that end. */
  at(quantity: number): number;
  readonly ticks: readonly Tick[];
}

export interface Tick {
  readonly quantity: number;
  readonly label: string;
}

const clamp = (place: number): number => Math.min(1, Math.max(0, place));

/** Linear over exactly `min` to `max`, with at most `count` + 1 ticks in steps of 1, 2 or 5 times a power of ten. */
export function linearScale(
  min: number,
  max: number,
  count: number,
  label: (quantity: number) => string,
): Scale {
  const start = Number.isFinite(min) ? min : 0;
  const end = Number.isFinite(max) && max > start ? max : start + 1;
  const step = niceStep((end - start) / Math.max(1, count));
  const first = Math.ceil(start / step - 1e-9);
  return {
    at: (quantity) => clamp((quantity - start) / (end - start)),
    ticks: Array.from({ length: Math.floor(end / step + 1e-9) - first + 1 }, (_, index) => {
      const quantity = Number(((first + index) * step).toPrecision(12));
      return { quantity, label: label(quantity) };
    }),
  };
}

/** Logarithmic over the whole decades that hold `min` to `max` (both above 0), with at most `count` labelled decades. */
export function logScale(min: number, max: number, count = 9): Scale {
  const low = Math.floor(decade(min) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(decade(max) - 1e-9));
  const every = Math.ceil((high - low) / Math.max(1, count));
  const ticks: Tick[] = [];
  for (let exponent = low; exponent <= high; exponent += every)
    ticks.push({ quantity: 10 ** exponent, label: powerOfTen(exponent) });
  return {
    at: (quantity) => (quantity > 0 ? clamp((Math.log10(quantity) - low) / (high - low)) : 0),
    ticks,
  };
}

const decade = (quantity: number): number =>
  quantity > 0 && Number.isFinite(quantity) ? Math.log10(quantity) : 0;

/** The smallest of 1, 2, 5, 10 times a power of ten that is at least `step`. */
function niceStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= step * (1 - 1e-9)) ?? 10;
  return factor * power;
}
