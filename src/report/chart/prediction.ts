import { formatStatistic } from '../../base/text/quantity.js';
import { type Mask, type Prediction, predictionText } from '../../quality/predictions/prediction.js';
import type { WorstSample } from '../../quality/verify/result.js';
import { type Content, type Markup, markup } from '../markup/markup.js';

/** A file of a sample as a page has it: a picture as a data URI, or the outline of a recording; else why it is not shown. */
export type ShownFile =
  | { readonly uri: string; readonly width: number; readonly height: number }
  | { readonly peaks: readonly (readonly [low: number, high: number])[]; readonly seconds: number }
  | { readonly why: string };
/** By the SHA-256 of the file. */
export type Pictures = ReadonlyMap<string, ShownFile>;

export const noPictures: Pictures = new Map();

type Size = NonNullable<WorstSample['size']>;

const colours = { reference: '#4db2ff', candidate: '#ffa62b', alone: '#ff4538' };
/** What only one side has. */
export const onlyWords = { reference: 'lost', candidate: 'new' } as const;
type Side = keyof typeof onlyWords;
const headings = { reference: 'Original', candidate: 'Candidate' } as const;

/** Each picture once; the drawings of both sides refer to it. */
export function pictureDefinitions(pictures: Pictures): Markup | null {
  const images = [...pictures].flatMap(([sha256, file]) =>
    'uri' in file
      ? [
          markup`<image id="picture-${sha256}" width="${file.width}" height="${file.height}" preserveAspectRatio="none" href="${file.uri}"/>`,
        ]
      : [],
  );
  return images.length === 0
    ? null
    : markup`<svg class="definitions" width="0" height="0" aria-hidden="true"><defs>${images}</defs></svg>\n`;
}

/** A sample as a figure: both sides beside one another, or the outline of a recording, and in words what they state. `id` is unique on the page. */
export function drawSample(sample: WorstSample, pictures: Pictures, id: string): Markup {
  const { file, share, sha256, size } = sample;
  const shown = pictures.get(sha256);
  const sides = (['reference', 'candidate'] as const).map((side) => {
    const words = wordsOf(sample, side);
    const drawing = size === null ? null : drawnSide(sample, side, shown, size, `${id}-${side}`);
    const isDecoded = size !== null || sample[side] !== null;
    return markup`<div>${drawing}${isDecoded && markup`<p><strong>${headings[side]}</strong> ${words}</p>`}</div>`;
  });
  const why = shown !== undefined && 'why' in shown ? shown.why : null;
  const sound = shown !== undefined && 'peaks' in shown && outline(shown, file, `${id}-sound`);
  const limit = share !== null && markup`, largest error: ${formatStatistic(Number(share))} of its limit`;
  return markup`<figure class="sample">${sound}<div class="pair">${sides}</div><figcaption><code>${file}</code> (sample ${sample.sample})${limit}.${why !== null && markup` ${why}`}</figcaption></figure>`;
}

/** Of two texts what differs is marked: the words between those that both begin and end with. */
function wordsOf(sample: WorstSample, side: Side): Content {
  const [own, other] = [sample[side], sample[side === 'reference' ? 'candidate' : 'reference']];
  if (own?.kind !== 'text' || other?.kind !== 'text' || own.text === other.text)
    return predictionText(own, onlyWords[side]);
  const [words, others] = [own.text, other.text].map((text) => text.split(' ')) as [string[], string[]];
  const shorter = Math.min(words.length, others.length);
  let [start, end] = [0, 0];
  while (start < shorter && words[start] === others[start]) start++;
  while (end < shorter - start && words.at(-1 - end) === others.at(-1 - end)) end++;
  const until = words.length - end;
  const [before, apart, after] = [words.slice(0, start), words.slice(start, until), words.slice(until)].map(
    (some) => some.join(' '),
  );
  return markup`${before} <mark>${apart}</mark> ${after}`;
}

function drawnSide(
  sample: WorstSample,
  side: Side,
  shown: ShownFile | undefined,
  { width, height }: Size,
  id: string,
): Markup {
  const title = `${headings[side]}: ${predictionText(sample[side], onlyWords[side])}`;
  const picture = shown !== undefined && 'uri' in shown && markup`<use href="#picture-${sample.sha256}"/>`;
  return markup`<svg role="img" aria-labelledby="${id}" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" xmlns="http://www.w3.org/2000/svg"><title id="${id}">${title}</title>${picture}${marksOf(sample[side], side, { width, height })}</svg>`;
}

/** A prediction as an SVG of a picture's size, to lay over it. */
export const predictionOverlay = (prediction: Prediction, size: Size): string =>
  markup`<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}">${marksOf(prediction, 'reference', size)}</svg>`.toString();

function marksOf(prediction: Prediction | null, side: Side, size: Size): Content {
  // Lines and text are as large on every picture once it is as wide as a column.
  const unit = Math.max(size.width, size.height) / 480;
  const label = (words: string, x: number, y: number, points = 15) =>
    markup`<text x="${fixed(x)}" y="${fixed(y)}" font-size="${fixed(points * unit)}" font-family="sans-serif" font-weight="600" fill="#fff" stroke="#000" stroke-width="${fixed(3 * unit)}" stroke-linejoin="round" paint-order="stroke">${words}</text>`;
  switch (prediction?.kind) {
    case undefined:
    case 'text':
      return null;
    case 'class':
      return label(prediction.label, 8 * unit, size.height - 10 * unit, 20);
    case 'mask':
      return maskMarks(prediction, label);
    case 'boxes':
      return prediction.boxes.map(({ box: [left, top, width, height], label: name, score, alone, mask }) => {
        const isAlone = alone === true;
        const colour = isAlone ? colours.alone : colours[side];
        const words = `${name} ${score}${isAlone ? ` ${onlyWords[side]}` : ''}`;
        const [, inside = ''] = mask === undefined ? [] : runPaths({ left, top, width, height }, mask, 2);
        return markup`${inside !== '' && markup`<path d="${inside}" fill="${colourOf(name)}" fill-opacity="0.45"/>`}<rect x="${left}" y="${top}" width="${width}" height="${height}" fill="none" stroke="${colour}" stroke-width="${fixed((isAlone ? 4 : 2.5) * unit)}"${isAlone && markup` stroke-dasharray="${fixed(10 * unit)} ${fixed(5 * unit)}"`}/>${label(words, left, Math.max(15 * unit, top - 5 * unit))}`;
      });
  }
}

/** Each label as one path of its runs, in a colour of its name, which stands in its longest run. */
function maskMarks(
  { area, columns, rows, labels, runs }: Mask,
  label: (words: string, x: number, y: number) => Markup,
): Content {
  const longest = labels.map(() => ({ cells: 0, x: 0, y: 0 }));
  const paths = runPaths(area, { columns, rows, runs }, labels.length, (at, cells, x, y) => {
    if (longest[at] !== undefined && cells > longest[at].cells) longest[at] = { cells, x, y };
  });
  return [
    labels.map((name, at) => markup`<path d="${paths[at]}" fill="${colourOf(name)}" fill-opacity="0.45"/>`),
    labels.map((name, at) => label(name, longest[at]?.x ?? 0, longest[at]?.y ?? 0)),
  ];
}

/** The cells of each value of a grid over an area as a path; `see` gets each run within a row with the place where it begins, halfway down. */
function runPaths(
  area: Mask['area'],
  { columns, rows, runs }: Pick<Mask, 'columns' | 'rows' | 'runs'>,
  values: number,
  see: (value: number, cells: number, x: number, y: number) => void = () => {},
): string[] {
  const [across, down] = [area.width / columns, area.height / rows];
  const paths: string[] = Array(values).fill('');
  let cell = 0;
  for (const [value, count] of runs)
    for (let left = count; left > 0; ) {
      const [row, column] = [Math.floor(cell / columns), cell % columns];
      const cells = Math.min(left, columns - column);
      const [x, y] = [area.left + column * across, area.top + row * down];
      paths[value] +=
        `M${fixed(x)} ${fixed(y)}h${fixed(cells * across)}v${fixed(down)}h${fixed(-cells * across)}z`;
      see(value, cells, x, y + down / 2);
      cell += cells;
      left -= cells;
    }
  return paths;
}

/** The same for one name on both sides and on every picture. */
const colourOf = (name: string): string =>
  `hsl(${Array.from(name).reduce((hash, letter) => (hash * 137 + (letter.codePointAt(0) ?? 0)) % 1e9, 7) % 360}, 85%, 50%)`;

function outline(
  { peaks, seconds }: Extract<ShownFile, { peaks: unknown }>,
  file: string,
  id: string,
): Markup {
  const points = peaks.map(([low, high], x) => `M${x} ${fixed(40 - 38 * high)}V${fixed(40.5 - 38 * low)}`);
  return markup`<svg class="sound" role="img" aria-labelledby="${id}" viewBox="0 0 ${peaks.length} 80" width="100%" height="80" preserveAspectRatio="none" xmlns="http://www.w3.org/2000/svg"><title id="${id}">${file}: ${formatStatistic(seconds)} seconds of sound</title><path d="${points.join('')}"/></svg>`;
}

const fixed = (number: number): number => Number(number.toFixed(1));
