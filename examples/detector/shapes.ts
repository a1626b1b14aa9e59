/** Side of the table of a figure: its value at each place of the square around it. */
export const GRID = 256;

/** Values of a table. */
export const OUTSIDE = 0;
export const FIRST_COLOUR = 1;
const SECOND_COLOUR = 2;

/** Radius of the circle that every outline lies in. */
const UNIT = 1024;

/** Whether a place is inside, x to the right and y down, for an outline within UNIT of the origin. */
type Outline = (x: number, y: number) => boolean;

type Point = readonly [x: number, y: number];

/** Even-odd rule, with products instead of quotients. */
const polygon =
  (...points: readonly Point[]): Outline =>
  (x, y) => {
    let inside = false;
    for (let i = 0; i < points.length; i++) {
      const [ax, ay] = points[i]!;
      const [bx, by] = points[(i + 1) % points.length]!;
      if (ay > y === by > y) continue;
      const side = (x - ax) * (by - ay) - (bx - ax) * (y - ay);
      if (side < 0 === by > ay) inside = !inside;
    }
    return inside;
  };

const rectangle =
  (halfWidth: number, halfHeight: number): Outline =>
  (x, y) =>
    Math.abs(x) <= halfWidth && Math.abs(y) <= halfHeight;

const either =
  (a: Outline, b: Outline): Outline =>
  (x, y) =>
    a(x, y) || b(x, y);

const disc: Outline = (x, y) => x * x + y * y <= UNIT * UNIT;

/** Seen from the origin, no border hides another: `framed` draws a smaller one inside. */
const OUTLINES: Readonly<Record<string, Outline>> = {
  disc,
  square: rectangle(724, 724),
  triangle: polygon([0, -1024], [887, 512], [-887, 512]),
  cross: either(rectangle(330, 969), rectangle(969, 330)),
  star: polygon(
    [0, -1024],
    [253, -348],
    [974, -316],
    [409, 133],
    [602, 828],
    [0, 430],
    [-602, 828],
    [-409, 133],
    [-974, -316],
    [-253, -348],
  ),
  arrow: polygon([0, -1000], [760, 60], [300, 60], [300, 960], [-300, 960], [-300, 60], [-760, 60]),
};

/** Figures of no class. */
const CLUTTER: readonly Outline[] = [
  rectangle(1010, 150),
  (x, y) => disc(x, y) && y >= 0,
  (x, y) => x * x + 6 * y * y <= UNIT * UNIT,
  (x, y) => 5 * Math.abs(x) <= 4 * Math.abs(y) && Math.abs(y) <= 750,
  either(
    (x, y) => x >= -600 && x <= -200 && Math.abs(y) <= 700,
    (x, y) => Math.abs(x) <= 600 && y >= 300 && y <= 700,
  ),
];

/** Width of a stripe or a check. */
const BAND = 380;

const odd = (value: number): boolean => (Math.floor((value + BAND / 2) / BAND) & 1) === 1;

/** Whether a place inside an outline has the second colour. */
const FILLS: Readonly<Record<string, (outline: Outline, x: number, y: number) => boolean>> = {
  plain: () => false,
  striped: (_, x) => odd(x),
  checked: (_, x, y) => odd(x + BAND / 2) !== odd(y + BAND / 2),
  framed: (outline, x, y) => outline(Math.trunc((x * 5) / 3), Math.trunc((y * 5) / 3)),
};

function table(outline: Outline, fill: (outline: Outline, x: number, y: number) => boolean): Uint8Array {
  const cells = new Uint8Array(GRID * GRID);
  const place = (cell: number) => ((2 * cell + 1 - GRID) * UNIT) / GRID;
  for (let row = 0; row < GRID; row++)
    for (let column = 0; column < GRID; column++) {
      const [x, y] = [place(column), place(row)];
      if (!outline(x, y)) continue;
      cells[row * GRID + column] = fill(outline, x, y) ? SECOND_COLOUR : FIRST_COLOUR;
    }
  return cells;
}

/** Names of the classes by index: every fill of every outline. */
export const CLASS_NAMES: readonly string[] = Object.keys(OUTLINES).flatMap((outline) =>
  Object.keys(FILLS).map((fill) => `${fill} ${outline}`),
);

const everyFill = (outlines: readonly Outline[]): readonly Uint8Array[] =>
  outlines.flatMap((outline) => Object.values(FILLS).map((fill) => table(outline, fill)));

/** Tables [GRID, GRID] of the classes, in the order of CLASS_NAMES. */
export const CLASS_TABLES = everyFill(Object.values(OUTLINES));

/** Tables of figures that belong to no class. */
export const CLUTTER_TABLES = everyFill(CLUTTER);
