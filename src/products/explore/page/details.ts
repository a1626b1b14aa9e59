import { formatBytes } from '../../../base/text/quantity.js';
import { cellText } from '../cell-text.js';
import type { Tensor } from '../result.js';
import { toneOf } from './colours.js';
import type { More, PageData, PageRow as Row } from './data.js';
import { button, element, svg } from './dom.js';
import { readersOf } from './lanes.js';
import { ROW_COLUMNS } from './listing.js';
import { MOST_NODES, neighbourhoodOf } from './neighbourhood.js';

type Fact = readonly [name: string, value: string];

/** What is known of one row or group: facts, why it is in its precision, what it reads and writes, and its neighbourhood. */
export class Details {
  readonly element = element('div', { class: 'details', role: 'region', 'aria-label': 'Selected layer' });
  #steps = 2;
  readonly #readers = new Map<number, readonly (readonly number[])[]>();

  constructor(
    readonly explored: PageData,
    readonly more: () => readonly More[],
    /** Shows a row of a side in its table. */
    readonly go: (side: number, row: number) => void,
    readonly leave: () => void,
  ) {
    this.element.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.leave();
    });
    this.element.append(
      element('p', { class: 'muted' }, ['Select a layer: its facts and neighbourhood stand here.']),
    );
  }

  focus(): void {
    this.element.querySelector('h2')?.focus();
  }

  /** Several rows are a folded scope. */
  showRows(side: number, rows: readonly number[]): void {
    const [row] = rows;
    if (row === undefined) return;
    if (rows.length > 1) this.#show(`${rows.length} layers`, [this.#list(side, rows)]);
    else this.#show(this.#row(side, row).name, [...this.#rowParts(side, row), this.#neighbours(side, row)]);
  }

  showGroup(group: number): void {
    const found = this.explored.comparison?.groups[group];
    if (found === undefined) return;
    const sides = [found.a, found.b].flatMap((rows, side) => {
      const head = element('h3', {}, [
        `${'AB'[side]}: ${rows.length === 0 ? 'no layer' : rows.length === 1 ? 'one layer' : `${rows.length} layers`}`,
      ]);
      const [row] = rows;
      if (row === undefined) return [head];
      return rows.length === 1 ? [head, ...this.#rowParts(side, row)] : [head, this.#list(side, rows)];
    });
    const [side, rows] = found.a.length > 0 ? [0, found.a] : [1, found.b];
    this.#show(found.copies ? 'Copies' : 'The same ONNX nodes', [...sides, this.#neighbours(side, rows[0]!)]);
  }

  #row = (side: number, row: number): Row => this.explored.sides[side]!.rows[row]!;

  #readersOf(side: number): readonly (readonly number[])[] {
    const known = this.#readers.get(side) ?? readersOf(this.explored.sides[side]!.rows);
    this.#readers.set(side, known);
    return known;
  }

  #show(title: string, parts: readonly Node[]): void {
    this.element.replaceChildren(element('h2', { tabindex: '-1' }, [title]), ...parts);
  }

  #rowParts(side: number, index: number): Node[] {
    const { attributes } = this.more()[side]!.rows[index]!;
    const row = this.#row(side, index);
    const { error, why } = row;
    const beside: Readonly<Record<string, Fact>> = {
      Precision: ['Why', why ?? 'No result that was read states why: pass the model or a run root.'],
      Error: ['Worst tensor', error === null ? '' : `${error.tensor}: ${error.outcome}`],
    };
    const facts = ROW_COLUMNS.slice(2).flatMap(({ title, kind, of }): Fact[] => [
      [title, cellText(kind, of(row, index))],
      ...(Object.hasOwn(beside, title) ? [beside[title]!] : []),
    ]);
    return [
      factList(facts),
      this.#tensors('Reads', side, row.inputs, 'outputs'),
      this.#tensors('Writes', side, row.outputs, 'inputs'),
      ...(attributes.length === 0
        ? []
        : [element('details', {}, [element('summary', {}, ['Attributes']), factList(attributes)])]),
    ];
  }

  /** Tensors of a row, each with the rows at its other end. */
  #tensors(title: string, side: number, places: readonly number[], other: 'inputs' | 'outputs'): Node {
    const { tensors } = this.more()[side]!;
    const items = places.map((place) => {
      const near = this.explored.sides[side]!.rows.flatMap((row, index) =>
        row[other].includes(place) ? [this.#link(side, index)] : [],
      ).slice(0, 12);
      return element('li', {}, [
        element('code', {}, [tensors[place]!.name]),
        ` ${tensorText(tensors[place]!)} `,
        ...near,
      ]);
    });
    return element('div', {}, [
      element('h3', {}, [title]),
      items.length === 0
        ? element('p', { class: 'muted' }, ['Nothing that is listed.'])
        : element('ul', { class: 'tensors' }, items),
    ]);
  }

  #link = (side: number, row: number): Node =>
    button(this.#row(side, row).name, () => this.go(side, row), { class: 'link' });

  #list = (side: number, rows: readonly number[]): Node =>
    element(
      'ul',
      { class: 'tensors' },
      rows.slice(0, MOST_NODES).map((row) => element('li', {}, [this.#link(side, row)])),
    );

  #neighbours(side: number, row: number): Node {
    const place = element('div', { class: 'neighbours' });
    const draw = () => {
      const found = neighbourhoodOf(this.#readersOf(side), row, this.#steps);
      const change = (by: number) => () => {
        this.#steps = Math.max(1, this.#steps + by);
        draw();
      };
      const cut = found.isCut ? `, the nearest ${MOST_NODES}` : '';
      place.replaceChildren(
        element('h3', {}, ['Neighbourhood']),
        element('p', { class: 'tools', 'aria-live': 'polite' }, [
          `${found.nodes.length} layers within ${this.#steps} steps${cut} `,
          button('Fewer', change(-1)),
          button('More', change(1)),
        ]),
        element(
          'div',
          { class: 'picture', tabindex: '0', role: 'region', 'aria-label': 'Picture of the neighbourhood' },
          [this.#picture(side, row, found)],
        ),
      );
    };
    draw();
    return place;
  }

  #picture(
    side: number,
    centre: number,
    { nodes, edges, columns, depth }: ReturnType<typeof neighbourhoodOf>,
  ): Node {
    const [width, height] = [168, 46];
    const size = { width: columns * width, height: depth * height };
    const picture = svg('svg', {
      ...size,
      viewBox: `0 0 ${size.width} ${size.height}`,
      role: 'img',
      'aria-label': `${nodes.length} layers around ${this.#row(side, centre).name}`,
    });
    const at = new Map(nodes.map(({ row, x, y }) => [row, { x: x * width + 4, y: y * height + 4 }]));
    for (const [from, to] of edges) {
      const [one, other] = [at.get(from)!, at.get(to)!];
      const [x, y, toX, toY] = [one.x + width / 2 - 4, one.y + 28, other.x + width / 2 - 4, other.y];
      picture.append(
        svg('path', { class: 'edge', d: `M${x} ${y}C${x} ${y + 18} ${toX} ${toY - 18} ${toX} ${toY}` }),
      );
    }
    for (const { row } of nodes) {
      const { x, y } = at.get(row)!;
      const { name, copies, precision, operator } = this.#row(side, row);
      const tone = toneOf(copies ? 'copy' : (precision ?? 'unknown'));
      const node = svg('g', {
        class: `node ${tone}${row === centre ? ' centre' : ''}`,
        transform: `translate(${x} ${y})`,
      });
      const label = name.length > 24 ? `…${name.slice(-23)}` : name;
      node.append(
        svg('title', {}, `${name} (${operator})`),
        svg('rect', { width: width - 8, height: 28, rx: 5 }),
        svg('text', { x: 8, y: 18 }, label),
      );
      node.addEventListener('click', () => this.go(side, row));
      picture.append(node);
    }
    return picture;
  }
}

const factList = (facts: readonly Fact[]): Node =>
  element(
    'dl',
    {},
    facts.flatMap(([name, value]) =>
      value === '' ? [] : [element('div', {}, [element('dt', {}, [name]), element('dd', {}, [value])])],
    ),
  );

const tensorText = ({ dtype, shape, format, bytes }: Tensor): string =>
  [
    dtype,
    shape === null ? null : `[${shape.map((dimension) => dimension ?? '?').join(', ')}]`,
    format,
    bytes === null ? null : formatBytes(bytes),
  ]
    .filter((text) => text !== null)
    .join(' · ');
