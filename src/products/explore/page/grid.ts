import { cellText } from '../cell-text.js';
import { palette, toneOf } from './colours.js';
import { button, cleared, element } from './dom.js';
import { type Lanes, lanesOf } from './lanes.js';
import type { Choice, Column, Line } from './listing.js';

/** Heights of a line and of the head, as the style has them. */
const ROW = 26;
const HEAD = 34;
/** Lines beyond the window that stand ready. */
const AROUND = 8;
const LANE = 11;
const LINE_ID = 'line-';

export interface Shown {
  readonly columns: readonly Column[];
  readonly lines: readonly Line[];
  readonly readers: readonly (readonly number[])[] | null;
  readonly sort: Choice['sort'];
}

export interface GridEvents {
  sort(column: number): void;
  /** A line became the current one. */
  select(line: Line): void;
  /** Enter on a line, or a second click: its details get the focus. */
  enter(line: Line): void;
  fold(line: Line, isOpen: boolean): void;
}

/**
 * A table of any length, of which the lines in the window alone are elements: a grid for screen readers and the keyboard, with the lanes of tensors to its left and all
 * lines as a strip to its right.
 */
export class Grid {
  readonly body = element('tbody');
  readonly #head = element('tr');
  readonly #above = element('td');
  readonly #below = element('td');
  readonly #lanes = element('canvas', { class: 'lanes', 'aria-hidden': 'true' });
  readonly #strip = element('canvas', { class: 'strip', 'aria-hidden': 'true' });
  readonly #table = element('table', { role: 'grid', tabindex: '0' });
  readonly #scroller: HTMLElement;
  readonly element: HTMLElement;
  #shown: Shown = { columns: [], lines: [], readers: null, sort: null };
  #drawnLanes: Lanes | null = null;
  #bars: { readonly height: number; readonly bars: { size: number; precision: string }[] } | null = null;
  #current = 0;
  #waits = false;

  constructor(readonly events: GridEvents) {
    const spacer = (cell: HTMLElement) =>
      element('tbody', { 'aria-hidden': 'true' }, [element('tr', {}, [cell])]);
    this.#table.append(
      element('thead', {}, [this.#head]),
      spacer(this.#above),
      this.body,
      spacer(this.#below),
    );
    this.#scroller = element('div', { class: 'scroller' }, [this.#table]);
    this.element = element('div', { class: 'grid' }, [this.#lanes, this.#scroller, this.#strip]);
    this.#scroller.addEventListener('scroll', () => this.#later(), { passive: true });
    new ResizeObserver(() => this.#later()).observe(this.#scroller);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#later());
    this.#table.addEventListener('keydown', (event) => this.#press(event));
    this.body.addEventListener('click', (event) => this.#click(event));
    for (const type of ['pointerdown', 'pointermove'] as const)
      this.#strip.addEventListener(type, (event) => {
        if (event.buttons === 0) return;
        const { top, height } = this.#strip.getBoundingClientRect();
        const share = (event.clientY - top) / height;
        this.#scroller.scrollTop = share * this.#shown.lines.length * ROW - this.#scroller.clientHeight / 2;
      });
  }

  focus(): void {
    this.#table.focus();
  }

  show(shown: Shown, label: string): void {
    this.#shown = shown;
    this.#drawnLanes = null;
    this.#bars = null;
    this.#current = Math.min(this.#current, Math.max(0, shown.lines.length - 1));
    const { columns, lines, sort } = shown;
    const attributes = {
      'aria-label': label,
      'aria-rowcount': lines.length + 1,
      'aria-colcount': columns.length,
    };
    for (const [name, value] of Object.entries(attributes)) this.#table.setAttribute(name, String(value));
    this.#head.replaceChildren(
      ...columns.map((each, column) => {
        const state = sort?.column !== column ? 'none' : sort.isDown ? 'descending' : 'ascending';
        const { title } = each;
        const arrow = { none: '', ascending: ' ↑', descending: ' ↓' }[state];
        const sorter = button(`${title}${arrow}`, () => this.events.sort(column), { tabindex: '-1' });
        return element('th', { scope: 'col', class: classOf(each), 'aria-sort': state }, [sorter]);
      }),
    );
    for (const cell of [this.#above, this.#below]) cell.colSpan = columns.length;
    this.body.replaceChildren();
    this.#draw();
  }

  /** Makes the line the current one and brings it into the window. */
  go(line: number): void {
    const { lines } = this.#shown;
    this.#current = Math.max(0, Math.min(lines.length - 1, line));
    const top = this.#current * ROW;
    const room = this.#scroller.clientHeight - HEAD - ROW;
    if (top < this.#scroller.scrollTop) this.#scroller.scrollTop = top;
    else if (top > this.#scroller.scrollTop + room) this.#scroller.scrollTop = top - room;
    this.#draw();
    const current = lines[this.#current];
    if (current !== undefined) this.events.select(current);
  }

  /** Scrolling draws once a frame. */
  #later(): void {
    if (this.#waits) return;
    this.#waits = true;
    requestAnimationFrame(() => {
      this.#waits = false;
      this.#draw();
    });
  }

  /** All that it needs of the layout is read first: what is read after a change costs another layout. A table that has none yet takes the height of the window, and its pictures once it has. */
  #draw(): void {
    const { lines } = this.#shown;
    const { isConnected } = this.element;
    const { scrollTop } = this.#scroller;
    const clientHeight = isConnected ? this.#scroller.clientHeight : innerHeight;
    const { clientHeight: height, clientWidth } = this.element;
    const window: Window = {
      scrollTop,
      clientHeight,
      height,
      width: clientWidth,
      strip: this.#strip.clientWidth,
    };
    const first = Math.max(0, Math.floor(scrollTop / ROW) - AROUND);
    const around = isConnected ? 2 * AROUND : 0;
    const last = Math.min(lines.length, first + Math.ceil(clientHeight / ROW) + around);
    this.#above.style.height = `${first * ROW}px`;
    this.#below.style.height = `${(lines.length - last) * ROW}px`;
    this.#place(first, last);
    if (lines.length > 0) this.#table.setAttribute('aria-activedescendant', `${LINE_ID}${this.#current}`);
    if (!isConnected) return;
    this.#drawLanes(window);
    this.#drawStrip(window);
  }

  /** Elements that stay in the window stay as they are; those that left it take the lines that came. */
  #place(first: number, last: number): void {
    const free: HTMLTableRowElement[] = [];
    for (const row of [...this.body.rows]) {
      const line = Number(row.id.slice(LINE_ID.length));
      if (line >= first && line < last) continue;
      row.remove();
      free.push(row);
    }
    const kept = this.body.rows[0] ?? null;
    const start = kept === null ? last : Number(kept.id.slice(LINE_ID.length));
    for (let line = first; line < start; line++)
      this.body.insertBefore(this.#fill(free.pop() ?? this.#emptyLine(), line), kept);
    for (let line = first + this.body.rows.length; line < last; line++)
      this.body.append(this.#fill(free.pop() ?? this.#emptyLine(), line));
    for (const row of this.body.rows) {
      const isCurrent = row.id === `${LINE_ID}${this.#current}`;
      if (row.getAttribute('aria-selected') !== String(isCurrent))
        row.setAttribute('aria-selected', String(isCurrent));
    }
  }

  #emptyLine(): HTMLTableRowElement {
    const { columns } = this.#shown;
    return element(
      'tr',
      {},
      columns.map((each, column) =>
        element(column === 0 ? 'th' : 'td', {
          class: classOf(each),
          ...(column === 0 ? { scope: 'row' } : {}),
        }),
      ),
    );
  }

  #fill(row: HTMLTableRowElement, index: number): HTMLTableRowElement {
    const { columns, lines } = this.#shown;
    const line = lines[index]!;
    row.id = `${LINE_ID}${index}`;
    row.className = line.folded === undefined ? '' : 'scope';
    row.setAttribute('aria-rowindex', String(index + 2));
    row.setAttribute('aria-selected', 'false');
    if (line.folded === undefined) row.removeAttribute('aria-expanded');
    else row.setAttribute('aria-expanded', String(line.folded.isOpen));
    for (const [column, { kind }] of columns.entries()) {
      const cell = row.cells[column]!;
      const mark = column === 0 && line.folded !== undefined ? (line.folded.isOpen ? '▾ ' : '▸ ') : '';
      const text = mark + cellText(kind, line.cell(column));
      cell.textContent = text;
      if (kind === 'text') cell.title = text;
    }
    return row;
  }

  #press(event: KeyboardEvent): void {
    const line = this.#shown.lines[this.#current];
    if (event.target !== this.#table || line === undefined) return;
    const page = Math.max(1, Math.floor((this.#scroller.clientHeight - HEAD) / ROW) - 1);
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    const step = steps[event.key];
    if (step !== undefined) this.go(this.#current + step);
    else if (event.key === 'Enter')
      line.folded === undefined ? this.events.enter(line) : this.events.fold(line, !line.folded.isOpen);
    else if (event.key === 'ArrowRight' && line.folded !== undefined) this.events.fold(line, true);
    else if (event.key === 'ArrowLeft' && line.folded !== undefined) this.events.fold(line, false);
    else return;
    event.preventDefault();
  }

  #click(event: MouseEvent): void {
    const row = (event.target as Element).closest('tr');
    const index = Number(row?.id.slice(LINE_ID.length));
    const line = this.#shown.lines[index];
    if (row === null || line === undefined) return;
    this.go(index);
    if (line.folded !== undefined) this.events.fold(line, !line.folded.isOpen);
  }

  /** Lines in the window and the tensors that run through it. */
  #drawLanes({ scrollTop, clientHeight, height, width: room }: Window): void {
    const { lines, readers } = this.#shown;
    this.#drawnLanes ??= readers && lanesOf(readers);
    const lanes = this.#drawnLanes;
    this.#lanes.hidden = lanes === null;
    if (lanes === null) return;
    const width = Math.floor(Math.min(Math.min(12, lanes.count) * LANE + 10, room * 0.22));
    this.#lanes.style.width = `${width}px`;
    const context = cleared(this.#lanes, width, height);
    const gap = Math.min(LANE, (width - 10) / Math.max(1, lanes.count));
    const x = (line: number) => 6 + lanes.lane[line]! * gap;
    const y = (line: number) => HEAD + line * ROW + ROW / 2 - scrollTop;
    context.beginPath();
    context.rect(0, HEAD, width, clientHeight);
    context.clip();
    const [from, to] = [Math.floor(scrollTop / ROW) - 1, Math.ceil((scrollTop + clientHeight) / ROW) + 1];
    context.lineWidth = 1.5;
    const colour = palette();
    for (let line = 0; line < Math.min(lines.length, to); line++) {
      if (lanes.end[line]! < from) continue;
      context.strokeStyle = colour(toneOf(lines[line]!.precision));
      for (const reader of readers![line]!) {
        if (reader < from) continue;
        context.beginPath();
        context.moveTo(x(line), y(line));
        context.lineTo(x(line), y(reader) - ROW / 2);
        context.quadraticCurveTo(x(line), y(reader), x(reader), y(reader));
        context.stroke();
      }
    }
    for (let line = Math.max(0, from); line < Math.min(lines.length, to); line++) {
      context.fillStyle = colour(toneOf(lines[line]!.precision));
      context.beginPath();
      context.arc(x(line), y(line), line === this.#current ? 5 : 3.5, 0, 2 * Math.PI);
      context.fill();
    }
  }

  /** All lines: a bar by the column that is sorted by, else by time, else by the first figure; and the window. */
  #drawStrip({ scrollTop, clientHeight, height, strip: width }: Window): void {
    const context = cleared(this.#strip, width, height);
    if (this.#bars?.height !== height) this.#bars = { height, bars: this.#barsOf(height) };
    const colour = palette();
    const { bars } = this.#bars;
    for (const [at, { size, precision }] of bars.entries()) {
      context.fillStyle = colour(toneOf(precision));
      const top = (at / bars.length) * height;
      context.fillRect(0, top, Math.max(2, size * width), Math.max(1, height / bars.length - 0.5));
    }
    const scrollHeight = Math.max(clientHeight, HEAD + this.#shown.lines.length * ROW);
    context.strokeStyle = colour('ink');
    const part = Math.max(6, (clientHeight / scrollHeight) * height);
    context.strokeRect(0.5, (scrollTop / scrollHeight) * height, width - 1, Math.min(height - 1, part));
  }

  /** A bar a line, or the largest of the lines that share a pixel. */
  #barsOf(height: number): { size: number; precision: string }[] {
    const { lines, columns, sort } = this.#shown;
    const isFigure = ({ kind }: Column) => kind !== 'text' && kind !== 'count';
    const wanted =
      sort !== null && isFigure(columns[sort.column]!) ? sort.column : columns.findIndex(isFigure);
    const bars = Array.from({ length: Math.min(lines.length, Math.max(1, Math.floor(height))) }, () => ({
      size: 0,
      precision: 'unknown',
    }));
    let largest = 0;
    for (const [index, { cell, precision }] of lines.entries()) {
      const bar = bars[Math.floor((index / lines.length) * bars.length)]!;
      const figure = Math.abs(Number(cell(wanted) ?? 0));
      const size = Number.isFinite(figure) ? figure : 0;
      if (size >= bar.size) Object.assign(bar, { size, precision });
      largest = Math.max(largest, size);
    }
    for (const bar of bars) bar.size /= largest || 1;
    return bars;
  }
}

/** The part of the table that is seen, and the room that there is, in CSS pixels. */
interface Window {
  readonly scrollTop: number;
  readonly clientHeight: number;
  readonly height: number;
  readonly width: number;
  readonly strip: number;
}

const classOf = ({ kind, isWide }: Column): string =>
  isWide === true ? 'words wide' : kind === 'text' ? 'words' : 'number';
