import type { RandomStream } from '../models/random.js';

/** `hum` is a machine: a low tone with overtones that swells, and hiss. No training phrase has it. */
export const noises = ['none', 'white', 'pink', 'hum'] as const;
export type Noise = (typeof noises)[number];

/** Noise of variance about 1; the same stream gives the same samples. */
function noiseOf(kind: Noise, length: number, rate: number, random: RandomStream): Float32Array {
  const out = new Float32Array(length);
  if (kind === 'none') return out;
  random.fillNormal(out, 0, 1);
  if (kind === 'white') return out;
  if (kind === 'pink') return pinkOf(out);
  const [tone, swell] = [90 + random.below(60), 2 + random.below(4)];
  const angle = (hertz: number, at: number) => (2 * Math.PI * hertz * at) / rate;
  return out.map((hiss, at) => {
    const level = 1 + 0.6 * Math.sin(angle(swell, at));
    const tones = [1, 2, 3, 5, 8].reduce(
      (sum, overtone) => sum + Math.sin(angle(tone * overtone, at)) / overtone,
      0,
    );
    return level * (tones + 0.2 * hiss);
  });
}

/** Three poles that fall by about 3 dB an octave from 40 Hz to 10 kHz (Kellet's economical filter). */
function pinkOf(white: Float32Array): Float32Array {
  let [a, b, c] = [0, 0, 0];
  return white.map((value) => {
    a = 0.99765 * a + 0.099046 * value;
    b = 0.963 * b + 0.2965164 * value;
    c = 0.57 * c + 1.0526913 * value;
    return a + b + c + 0.1848 * value;
  });
}

/** `clean` with noise so many dB below it, by energy over the whole length. */
export function withNoise(
  clean: Float32Array,
  { kind, decibels, rate }: { readonly kind: Noise; readonly decibels: number; readonly rate: number },
  random: RandomStream,
): Float32Array {
  const noise = noiseOf(kind, clean.length, rate, random);
  const energy = (samples: Float32Array) => samples.reduce((sum, value) => sum + value * value, 0);
  const noiseEnergy = energy(noise);
  if (noiseEnergy === 0) return clean;
  const gain = Math.sqrt(energy(clean) / noiseEnergy) * 10 ** (-decibels / 20);
  return clean.map((value, at) => value + gain * noise[at]!);
}
