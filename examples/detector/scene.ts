import { Pcg32 } from './random.js';
import { CLASS_TABLES, CLUTTER_TABLES, FIRST_COLOUR, GRID, OUTSIDE } from './shapes.js';

/** Width and height of a scene in pixels. */
export const SIDE = 256;

/** What a scene shows of one object, or of a crowd. */
export interface SceneObject {
  /** Index into CLASS_NAMES. */
  readonly category: number;
  readonly crowd: boolean;
  /** Left, top, width, height of its visible pixels. */
  readonly box: readonly [number, number, number, number];
  /** Number of its visible pixels. */
  readonly area: number;
}

export interface Scene {
  /** Red, green, blue: [SIDE, SIDE, 3]. */
  readonly pixels: Uint8Array;
  /** Whom each pixel belongs to: 0 nobody, n objects[n-1]: [SIDE, SIDE]. */
  readonly owners: Uint8Array;
  readonly objects: readonly SceneObject[];
}

/** Each split is another sequence of random numbers, so no scene of one is in another. */
export const SPLITS = { train: 1, validation: 2, test: 3 } as const;

type Colour = readonly [number, number, number];

/** Sines of a quarter turn in 16 steps, times 1024. */
const QUARTER = [
  0, 100, 200, 297, 392, 483, 569, 650, 724, 792, 851, 903, 946, 980, 1004, 1019, 1024,
] as const;
const TURN = 64;

function sine(step: number): number {
  const at = step & (TURN - 1);
  const [inside, negative] = [at & (TURN / 2 - 1), at >= TURN / 2];
  const value = QUARTER[inside <= TURN / 4 ? inside : TURN / 2 - inside]!;
  return negative ? -value : value;
}

/** Diameters of 12 to 256 pixels, each 1/16 above the one before: drawn evenly, their logarithms are even. */
const SIZES: readonly number[] = (() => {
  const sizes: number[] = [];
  for (let size = 12 * 256; size < 256 * 256; size += size >> 4) sizes.push(size >> 8);
  return sizes;
})();

/** Figures cover others only as far as two fifths of each remain visible. */
const VISIBLE = [2, 5] as const;

const LATTICE = 32;

interface Figure {
  readonly table: Uint8Array;
  readonly x: number;
  readonly y: number;
  readonly size: number;
  readonly angle: number;
  readonly colours: readonly [Colour, Colour];
}

/** Draws one scene. Whole numbers only: the same split and index are the same pixels on every machine. */
export function drawScene(split: keyof typeof SPLITS, index: number): Scene {
  const random = new Pcg32(index, Math.imul(index + 1, 0x9e3779b1) >>> 0, SPLITS[split]);
  const canvas = new Canvas(random);
  for (let left = random.below(4); left > 0; left--) canvas.place([clutter(random)], undefined);
  // Large ones first: small ones on them leave enough to see.
  const sizes = Array.from({ length: random.between(2, 10) }, () => randomSize(random)).sort((a, b) => b - a);
  for (const size of sizes) {
    if (random.below(12) === 0) canvas.place([clutter(random)], undefined);
    const category = random.below(CLASS_TABLES.length);
    canvas.place([figure(random, CLASS_TABLES[category]!, size)], { category, crowd: false });
  }
  if (random.below(14) === 0) {
    const category = random.below(CLASS_TABLES.length);
    canvas.place(crowd(random, CLASS_TABLES[category]!), { category, crowd: true });
  }
  return canvas.finish();
}

const randomSize = (random: Pcg32): number => SIZES[random.below(SIZES.length)]!;

const randomColour = (random: Pcg32): Colour => [random.below(256), random.below(256), random.below(256)];

const difference = (a: Colour, b: Colour): number =>
  Math.abs(a[0] - b[0]) + Math.abs(a[1] - b[1]) + Math.abs(a[2] - b[2]);

function figure(random: Pcg32, table: Uint8Array, size: number, x?: number, y?: number): Figure {
  const first = randomColour(random);
  let second = randomColour(random);
  while (difference(first, second) < 160) second = randomColour(random);
  const margin = size >> 2;
  return {
    table,
    x: x ?? random.between(margin, SIDE - margin),
    y: y ?? random.between(margin, SIDE - margin),
    size,
    angle: random.below(TURN),
    colours: [first, second],
  };
}

const clutter = (random: Pcg32): Figure =>
  figure(random, CLUTTER_TABLES[random.below(CLUTTER_TABLES.length)]!, randomSize(random));

/** Many small figures of one class close together. */
function crowd(random: Pcg32, table: Uint8Array): readonly Figure[] {
  const reach = random.between(24, 56);
  const [x, y] = [random.between(reach, SIDE - reach), random.between(reach, SIDE - reach)];
  return Array.from({ length: random.between(12, 24) }, () =>
    figure(
      random,
      table,
      random.between(12, 28),
      x + random.between(-reach, reach),
      y + random.between(-reach, reach),
    ),
  );
}

/** Calls back for every pixel of a figure that is on the canvas, with the value of its table there. */
function trace({ table, x, y, size, angle }: Figure, visit: (at: number, value: number) => void): void {
  const [sin, cos] = [sine(angle), sine(angle + TURN / 4)];
  const radius = (size >> 1) + 1;
  // Coordinates in half pixels times 1024, brought to cells of the table by a factor of 2^-20.
  const scale = Math.floor(((GRID / 2) * 1024) / size);
  const left = Math.max(0, x - radius);
  const right = Math.min(SIDE, x + radius);
  for (let row = Math.max(0, y - radius); row < Math.min(SIDE, y + radius); row++) {
    const down = 2 * (row - y) + 1;
    for (let column = left; column < right; column++) {
      const across = 2 * (column - x) + 1;
      const u = (((across * cos + down * sin) * scale) >> 20) + GRID / 2;
      const v = (((down * cos - across * sin) * scale) >> 20) + GRID / 2;
      if (u < 0 || v < 0 || u >= GRID || v >= GRID) continue;
      const value = table[v * GRID + u]!;
      if (value !== OUTSIDE) visit(row * SIDE + column, value);
    }
  }
}

class Canvas {
  readonly #pixels = new Uint8Array(SIDE * SIDE * 3);
  /** 0 nobody; clutter has owners too while it is drawn, to remain visible. */
  readonly #owners = new Uint8Array(SIDE * SIDE);
  /** The last attempt to place figures that wanted a pixel. */
  readonly #marks = new Uint16Array(SIDE * SIDE);
  #attempts = 0;
  readonly #random: Pcg32;
  /** Of each owner from 1 on: pixels when drawn, pixels visible now, what it is. */
  readonly #drawn: number[] = [0];
  readonly #visible: number[] = [0];
  readonly #kinds: (Pick<SceneObject, 'category' | 'crowd'> | undefined)[] = [undefined];

  constructor(random: Pcg32) {
    this.#random = random;
    this.#background();
  }

  /** Colours between random ones at the corners of squares of 32 pixels, around one colour of the scene. */
  #background(): void {
    const random = this.#random;
    const base = randomColour(random);
    const spread = random.between(4, 60);
    const corners = SIDE / LATTICE + 1;
    const lattice = Int32Array.from(
      { length: corners * corners * 3 },
      (_, i) => base[i % 3]! + random.between(-spread, spread),
    );
    let at = 0;
    for (let y = 0; y < SIDE; y++)
      for (let x = 0; x < SIDE; x++) {
        const corner = ((y >> 5) * corners + (x >> 5)) * 3;
        const [fx, fy] = [x & 31, y & 31];
        for (let channel = corner; channel < corner + 3; channel++) {
          const above = lattice[channel]! * (32 - fx) + lattice[channel + 3]! * fx;
          const below =
            lattice[channel + corners * 3]! * (32 - fx) + lattice[channel + corners * 3 + 3]! * fx;
          this.#pixels[at++] = clamp((above * (32 - fy) + below * fy) >> 10);
        }
      }
  }

  /** Draws figures as one owner, unless they would hide too much of one drawn before, or look like what is behind them. */
  place(figures: readonly Figure[], kind: Pick<SceneObject, 'category' | 'crowd'> | undefined): void {
    if (this.#drawn.length > 255 || !figures.every((drawn) => this.#stands(drawn))) return;
    const owner = this.#drawn.length;
    const covered = this.#drawn.map(() => 0);
    const attempt = ++this.#attempts;
    let size = 0;
    for (const drawn of figures)
      trace(drawn, (at) => {
        // Figures of a crowd overlap.
        if (this.#marks[at] === attempt) return;
        this.#marks[at] = attempt;
        covered[this.#owners[at]!]!++;
        size++;
      });
    const hides = covered.some(
      (count, other) =>
        other > 0 && (this.#visible[other]! - count) * VISIBLE[1] < this.#drawn[other]! * VISIBLE[0],
    );
    if (hides || size === 0) return;
    for (const [other, count] of covered.entries()) this.#visible[other]! -= count;
    this.#drawn.push(size);
    this.#visible.push(size);
    this.#kinds.push(kind);
    for (const drawn of figures)
      trace(drawn, (at, value) => {
        const colour = drawn.colours[value === FIRST_COLOUR ? 0 : 1];
        this.#owners[at] = owner;
        this.#pixels[at * 3] = colour[0];
        this.#pixels[at * 3 + 1] = colour[1];
        this.#pixels[at * 3 + 2] = colour[2];
      });
  }

  /** Whether a figure differs from the pixel that is now at its centre. */
  #stands({ x, y, colours }: Figure): boolean {
    const at = (clampSide(y) * SIDE + clampSide(x)) * 3;
    const [red, green, blue] = this.#pixels.subarray(at, at + 3) as unknown as Colour;
    return colours.every((colour) => difference(colour, [red, green, blue]) >= 60);
  }

  /** Adds noise, and finds what is visible of each object. */
  finish(): Scene {
    this.#noise();
    const found = this.#kinds.map(() => ({ left: SIDE, top: SIDE, right: -1, bottom: -1, area: 0 }));
    for (let row = 0; row < SIDE; row++)
      for (let column = 0; column < SIDE; column++) {
        const of = found[this.#owners[row * SIDE + column]!]!;
        of.area++;
        if (column < of.left) of.left = column;
        if (column > of.right) of.right = column;
        if (row < of.top) of.top = row;
        of.bottom = row;
      }
    const objects: SceneObject[] = [];
    const numbers = this.#kinds.map((kind, owner) => {
      const { left, top, right, bottom, area } = found[owner]!;
      if (kind === undefined) return 0;
      return objects.push({ ...kind, box: [left, top, right - left + 1, bottom - top + 1], area });
    });
    return { pixels: this.#pixels, owners: this.#owners.map((owner) => numbers[owner]!), objects };
  }

  #noise(): void {
    const random = this.#random;
    const steps = 2 * random.below(21) + 1;
    const reach = steps >> 1;
    const pixels = this.#pixels;
    for (let at = 0; at < pixels.length; at += 4) {
      const bits = random.next();
      for (let part = 0; part < 4; part++) {
        const step = (((bits >>> (8 * part)) & 255) * steps) >> 8;
        pixels[at + part] = clamp(pixels[at + part]! + step - reach);
      }
    }
  }
}

const clamp = (value: number): number => Math.max(0, Math.min(255, value));
const clampSide = (value: number): number => Math.max(0, Math.min(SIDE - 1, value));
