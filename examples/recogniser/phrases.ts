import type { RandomStream } from '../models/random.js';

const DIGITS = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];
const VERBS = ['open', 'close', 'start', 'stop', 'lift', 'lower', 'turn', 'check'];
const PLACES = ['left', 'right', 'upper', 'inner', 'outer', 'north', 'south', 'east', 'west'];
const NOUNS = ['gate', 'valve', 'pump', 'lamp', 'motor', 'door', 'window', 'fan', 'heater', 'switch'];

/** Every word that a phrase may have: the tokens of the recogniser, in this order. */
export const vocabulary: readonly string[] = [
  ...DIGITS,
  ...VERBS,
  ...PLACES,
  ...NOUNS,
  'the',
  'and',
  'please',
];

/** Two to six digits, or one or two orders: "please open the north gate five", "stop the pump and check the fan". */
export function phrase(random: RandomStream): string {
  const digits = (count: number) => Array.from({ length: count }, () => random.oneOf(DIGITS));
  const order = () => [random.oneOf(VERBS), 'the'];
  switch (random.below(4)) {
    case 0:
      return digits(2 + random.below(5)).join(' ');
    case 1:
      return [...order(), random.oneOf(NOUNS), 'and', ...order(), random.oneOf(NOUNS)].join(' ');
    default: {
      const polite = random.below(4) === 0 ? ['please'] : [];
      return [...polite, ...order(), random.oneOf(PLACES), random.oneOf(NOUNS), ...digits(1)].join(' ');
    }
  }
}
