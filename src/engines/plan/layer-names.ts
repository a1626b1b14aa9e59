/** Where a layer comes from, by its name and metadata. */
export interface LayerOrigin {
  readonly onnxNodes: readonly string[];
  readonly region: { readonly first: string; readonly last: string } | null;
}

/** A copy in front of, or behind, another layer: the rest of the name is that layer's. */
const SERVES =
  /^(?:Reformatting CopyNode for (?:Input|Output) Tensor \d+ (?:to|from) |(?:copied_)?(?:un)?(?:reshape|squeeze|shuffle|transpose|squeeze_node|shuffle_node)_(?:before|after)_)/;

/** Names the library made up itself: no node of the model is behind them. */
const MADE_UP = /^(?:\(Unnamed Layer|ONNXTRT_|__my|\[)/;

/**
 * Names of the ONNX nodes behind a layer. The metadata decides where the library wrote any (8.6 and later, detailed): `[ONNX Layer: a]`, several separated
 * by U+001E. Else the name is read: `a + b` (fused), `a || b` (side by side), `PWN(a, b)` (pointwise), `{ForeignNode[a...b]}` (a compiled region, first
 * and last node), and copies that serve a layer. `metadata` null means that the engine reports names only.
 */
export function originOfLayer(name: string, metadata: string | null, type: string | null): LayerOrigin {
  const region = regionOf(name);
  const fromMetadata = nodesOfMetadata(metadata ?? '');
  if (fromMetadata.length > 0) return { onnxNodes: fromMetadata, region };
  const served = name.replace(SERVES, '');
  // Empty metadata reports that no node of the model is behind it; then only a copy's name, and a region's, have more.
  const isNamed = metadata === null || served !== name || region !== null;
  if (!isNamed || type === 'Constant') return { onnxNodes: [], region };
  return { onnxNodes: nodesOfName(served), region };
}

/** The ONNX nodes that metadata names. Compiled programs separate by U+001F as well. */
export function nodesOfMetadata(metadata: string): string[] {
  const nodes = metadata
    .replaceAll('\u001f', '\u001e')
    .split('\u001e')
    .flatMap((part) => {
      const found = /^\s*\[ONNX Layer: ([\s\S]*)\]\s*$/.exec(part)?.[1];
      return found === undefined || found === '' ? [] : [found];
    });
  return [...new Set(nodes)];
}

/** The first and last node of `{ForeignNode[first...last]}`. Node names may hold dots themselves: the middle is where three stand in a row. */
export function regionOf(name: string): LayerOrigin['region'] {
  const start = name.indexOf('ForeignNode[');
  const end = name.indexOf(']', name.indexOf('...', start));
  if (start < 0 || end < start) return null;
  const [first = '', last = ''] = splitOnce(name.slice(start + 'ForeignNode['.length, end), '...');
  return first === '' || last === '' ? null : { first, last };
}

function nodesOfName(name: string): string[] {
  const nodes: string[] = [];
  for (const part of name.split(/ \+ | \|\| /)) {
    const region = regionOf(part);
    if (region !== null) nodes.push(region.first, region.last);
    else for (const node of pointwise(part)) nodes.push(node);
  }
  return [...new Set(nodes)].filter((node) => node !== '' && !MADE_UP.test(node));
}

/** `PWN(PWN(a), b)` is a and b. */
function pointwise(part: string): string[] {
  if (!part.includes('PWN(')) return [part.trim()];
  return part
    .split('PWN(')
    .flatMap((piece) => piece.split(','))
    .map((piece) => withoutClosers(piece.trim()));
}

/** A node's own name may hold brackets: only those that were not opened in it are closers of `PWN(`. */
function withoutClosers(text: string): string {
  let open = 0;
  for (let index = 0; index < text.length; index++) {
    if (text[index] === '(') open++;
    else if (text[index] === ')' && --open < 0) return text.slice(0, index).trim();
  }
  return text;
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, text] : [text.slice(0, at), text.slice(at + separator.length)];
}
