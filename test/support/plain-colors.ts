import type { Colors } from '../../src/cli/command.js';

const plain = (text: string): string => text;

/** What a view gets where colours are off. */
export const plainColors: Colors = {
  bold: plain,
  dim: plain,
  red: plain,
  green: plain,
  yellow: plain,
  cyan: plain,
};
