import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { operatorTable } from '../../engines/layers/operator-times.js';
import { numbers } from '../../report/blocks.js';
import { tableMarkup } from '../../report/html.js';
import {
  ascii,
  htmlFile,
  jsonIsland,
  type Markup,
  markup,
  ownSource,
  visibleText,
} from '../../report/markup/markup.js';
import { pageStyle } from '../../report/markup/style.js';
import { pack } from './page/packed.js';
import type { Explored, Row } from './result.js';
import { exploreStyle } from './style.js';

/** What scripts/bundle.mjs makes of `page/main.ts`: one script without imports. */
const script = new URL('../../../dist/products/explore/page-script.js', import.meta.url);

/** What a reader would not see is visible also in the data, of which the page makes its text. */
const island = (data: unknown): Markup =>
  jsonIsland(data, (_, value) => (typeof value === 'string' ? visibleText(value) : value));

const withoutMore = ({ attributes: _, ...row }: Row): Omit<Row, 'attributes'> => row;

function operatorMarkup({ operators }: Explored): Markup {
  const { heads, rows } = operatorTable(operators);
  const [first = '', ...others] = heads;
  const caption =
    'Each layer is counted once: for the node of it with the most FLOPs, or the first that multiplies';
  return tableMarkup({ kind: 'table', caption, columns: [first, ...numbers(...others)], rows, isMap: false });
}

/**
 * The page. Names come from outside: they are data in an inert element, hidden characters made visible, and reach the page as text nodes alone.
 */
export function explorePage(explored: Explored): string {
  const code = ascii(readFileSync(script, 'utf8'));
  const name = explored.sides.map(({ file }) => basename(file)).join(' and ');
  const { sides, ...rest } = explored;
  const shown = {
    ...rest,
    sides: sides.map(({ rows, tensors, ...side }) => ({ ...side, rows: pack(rows.map(withoutMore)) })),
  };
  const more = sides.map(({ rows, tensors }) => ({
    tensors: pack(tensors),
    rows: pack(rows.map(({ attributes }) => ({ attributes }))),
  }));
  const body = markup`<div id="app"><noscript>This page draws its table with a script of its own. The data are in it as JSON, in the element with the id "data".</noscript></div>
<div class="by-operator" hidden>${operatorMarkup(explored)}</div>
<script type="application/json" id="data">${island(shown)}</script>
<script>${ownSource(code)}</script>
<script type="application/json" id="more">${island(more)}</script>`;
  const style = `${pageStyle}${exploreStyle}`;
  return htmlFile(
    { title: markup`${name} &middot; layers`, body },
    { version: explored.version, style, script: code },
  );
}
