import { aboutComparison, aboutSide } from '../cell-text.js';
import type { Explored } from '../result.js';
import { toneOf } from './colours.js';
import type { More, PackedSide, PageData, PageSide } from './data.js';
import { Details } from './details.js';
import { button, element } from './dom.js';
import { Grid } from './grid.js';
import { type Choice, groupListing, type Listing, rowListing, shown } from './listing.js';
import { type Packed, unpack } from './packed.js';

const dataOf = <T>(id: string): T => JSON.parse(document.getElementById(id)!.textContent!) as T;

const explored = readData();
const { sides, comparison } = explored;
const letters = sides.length === 1 ? [''] : ['A', 'B'];

function readData(): PageData {
  const { sides: packed, ...rest } = dataOf<Omit<Explored, 'sides'> & { readonly sides: PackedSide[] }>(
    'data',
  );
  return { ...rest, sides: packed.map((side) => ({ ...side, rows: unpack(side.rows) })) };
}

interface View {
  readonly title: string;
  /** The table's lines; made when it is first shown. */
  readonly listing: () => Listing;
  /** Which side's rows they are; null for groups of both. */
  readonly side: number | null;
}

const once = <T>(make: () => T): (() => T) => {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
};

const rowViews = sides.map(
  (side, index): View => ({
    title: sides.length === 1 ? 'Layers' : `Layers of ${letters[index]}`,
    listing: once(() => rowListing(side)),
    side: index,
  }),
);
const views: readonly View[] = [
  ...(comparison === null
    ? []
    : [{ title: 'Both', listing: once(() => groupListing(explored)), side: null }]),
  ...rowViews,
];

let view = views[0]!;
let shownLines: Listing['lines'] = [];
let choice: Choice = { sort: null, search: '', withIdle: false, depth: 0, open: new Set() };

const grid = new Grid({
  sort: (column) => {
    const { sort } = choice;
    const isDown = view.listing().columns[column]!.kind !== 'text';
    // A third press brings back the order of execution.
    const next =
      sort?.column !== column
        ? { column, isDown }
        : sort.isDown === isDown
          ? { column, isDown: !isDown }
          : null;
    update({ sort: next });
  },
  select: ({ members }) => select(members),
  enter: ({ members }) => {
    select(members);
    details.focus();
  },
  fold: ({ folded }, isOpen) => {
    const open = new Set(choice.open);
    if (isOpen) open.add(folded!.key);
    else open.delete(folded!.key);
    update({ open });
  },
});
const more = once(() =>
  dataOf<Record<keyof More, Packed>[]>('more').map(
    ({ tensors, rows }): More => ({ tensors: unpack(tensors), rows: unpack(rows) }),
  ),
);
const details = new Details(explored, more, goTo, () => grid.focus());
const count = element('span', { class: 'muted', role: 'status' });
const search = element('input', {
  type: 'search',
  placeholder: 'name, type, tactic',
  'aria-label': 'Search layers',
  autocomplete: 'off',
});
const scopes = element(
  'select',
  {},
  ['no scopes', '1 level', '2 levels', '3 levels', '4 levels'].map((text, depth) =>
    element('option', { value: String(depth) }, [text]),
  ),
);
const idle = element('input', { type: 'checkbox' });
const layers = element('div', { class: 'layers' }, [grid.element, details.element]);
const byOperator = document.querySelector<HTMLElement>('.by-operator')!;
const tabs = [
  ...views.map((each) => button(each.title, () => show(each))),
  button('By operator', () => showOperators()),
];

function select(members: readonly number[]): void {
  if (view.side === null) details.showGroup(members[0]!);
  else details.showRows(view.side, members);
}

function goTo(side: number, row: number): void {
  const found = rowViews[side]!;
  search.value = '';
  scopes.value = '0';
  const isIdle = found.listing().lines[row]!.isIdle;
  if (isIdle) idle.checked = true;
  choice = { ...choice, sort: null, search: '', withIdle: idle.checked, depth: 0 };
  show(found);
  grid.go(shownLines.findIndex(({ members }) => members[0] === row));
}

function press(tab: number): void {
  for (const [index, each] of tabs.entries()) each.setAttribute('aria-pressed', String(index === tab));
  const isTable = tab < views.length;
  layers.hidden = !isTable;
  byOperator.hidden = isTable;
  tools.hidden = !isTable;
}

function show(next: View): void {
  if (view !== next) choice = { ...choice, sort: null, open: new Set() };
  view = next;
  press(views.indexOf(next));
  update({});
}

const showOperators = (): void => press(views.length);

function update(change: Partial<Choice>): void {
  choice = { ...choice, ...change };
  const listing = view.listing();
  const { lines, readers } = shown(listing, choice);
  shownLines = lines;
  grid.show({ columns: listing.columns, lines, readers, sort: choice.sort }, view.title);
  count.textContent = `${lines.length} of ${listing.lines.length}`;
}

idle.addEventListener('change', () => update({ withIdle: idle.checked }));
search.addEventListener('input', () => update({ search: search.value }));
scopes.addEventListener('change', () => update({ depth: Number(scopes.value), open: new Set() }));
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target instanceof HTMLInputElement) return;
  event.preventDefault();
  search.focus();
});

const precisions = new Set(
  sides.flatMap(({ rows }) =>
    rows.map(({ copies, precision }) => (copies ? 'copy' : (precision ?? 'unknown'))),
  ),
);
const tools = element('div', { class: 'tools' }, [
  element('label', {}, ['Search ', search]),
  element('label', {}, ['Fold ', scopes]),
  ...(sides.some(({ rows }) => rows.some(({ constant, copies }) => constant && !copies))
    ? [element('label', {}, [idle, ' Weights'])]
    : []),
  count,
  element(
    'span',
    { class: 'legend' },
    [...precisions].map((name) => element('span', { class: `tone ${toneOf(name)}` }, [name])),
  ),
  element('span', { class: 'muted keys' }, ['Keys: / search · arrows · Enter details · Escape back']),
]);

function sideElement({ from, notes, ...side }: PageSide, index: number): Node {
  const more = [...(from.length === 0 ? [] : [`With ${from.join(', ')}.`]), ...notes];
  const items = more.map((note) => element('li', {}, [note]));
  return element('div', { class: 'side' }, [
    element('p', {}, [
      element('strong', {}, [`${letters[index]} ${side.file}`.trim()]),
      ` ${aboutSide({ ...side, from, notes })}`,
    ]),
    ...(more.length === 0
      ? []
      : [
          element('details', {}, [
            element('summary', {}, [`Notes (${more.length})`]),
            element('ul', {}, items),
          ]),
        ]),
  ]);
}

// Before it is part of the document, so that nothing asks for a layout before the first paint.
show(view);
document
  .getElementById('app')!
  .replaceChildren(
    element('header', {}, [
      element('h1', {}, ['Layers']),
      ...sides.map(sideElement),
      ...(comparison === null ? [] : [element('p', {}, [aboutComparison(comparison)])]),
    ]),
    element('main', {}, [
      element('div', { class: 'tools', role: 'group', 'aria-label': 'Tables' }, tabs),
      tools,
      layers,
      byOperator,
    ]),
  );
