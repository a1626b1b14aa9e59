/** What tests ask of an open page. These functions run inside the browser, so they use nothing from outside themselves. */

/** WCAG contrast of every visible piece of text against the nearest opaque background behind it, the lowest first. */
export function contrasts() {
  const channel = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = ([red, green, blue]) =>
    0.2126 * channel(red / 255) + 0.7152 * channel(green / 255) + 0.0722 * channel(blue / 255);
  // A mixed colour is written as `color(srgb …)`, with parts up to 1.
  const parse = (color) =>
    (color.match(/[\d.]+/g) ?? []).map(
      (part, index) => part * (color.startsWith('color(') && index < 3 ? 255 : 1),
    );
  const backdrop = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color[3] === undefined || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.textContent.trim();
    if (text === '' || element.closest('script, title, desc, .skip') || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const ink = luminance(parse(element instanceof SVGElement ? style.fill : style.color));
    const paper = luminance(backdrop(element));
    found.push({ text, ratio: (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05) });
  }
  return found.sort((a, b) => a.ratio - b.ratio);
}

/** Pairs of labels of one chart whose boxes overlap by more than a hair. */
export function overlappingLabels() {
  const overlap = (a, b) =>
    Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x) > 1 &&
    Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y) > 4;
  return [...document.querySelectorAll('svg.chart')].flatMap((chart) => {
    const labels = [...chart.querySelectorAll('text')];
    return labels.flatMap((a, index) =>
      labels
        .slice(index + 1)
        .filter((b) => overlap(a.getBoundingClientRect(), b.getBoundingClientRect()))
        .map((b) => `${chart.querySelector('title').textContent}: "${a.textContent}" and "${b.textContent}"`),
    );
  });
}

/** The horizontal place of each label, with that of its chart. */
export const labelPlaces = () =>
  [...document.querySelectorAll('svg.chart text.mark-label')].map((label) => {
    const [own, chart] = [label, label.closest('svg.chart')].map((each) => each.getBoundingClientRect());
    return {
      text: label.textContent,
      left: own.left - chart.left,
      right: chart.right - own.right,
    };
  });

export const scrollToEnd = () => {
  for (const box of document.querySelectorAll('.scroll')) box.scrollLeft = box.scrollWidth;
};

export function openEverything() {
  for (const details of document.querySelectorAll('details')) details.open = true;
}

export const pageWidth = () => document.documentElement.scrollWidth;

export const paperColor = () => getComputedStyle(document.body).backgroundColor;

export const selectedText = () => getSelection().toString().trim();

/** What the style sheet writes before every caption: "Figure " counter(figure) ". ". */
export const captionNumbers = () =>
  [...document.querySelectorAll('figcaption, caption > span')].map(
    (caption) => getComputedStyle(caption, '::before').content,
  );

export const clipboardText = () => navigator.clipboard.readText();

export function forbidClipboard() {
  navigator.clipboard.writeText = () => Promise.reject(new Error('forbidden'));
}

/** What a cell of a map shows above it. */
export const columnShown = (cell) => getComputedStyle(cell, '::before').content;

/** Whether any pixel of a canvas has a colour. */
export const isDrawn = (canvas) =>
  canvas
    .getContext('2d')
    .getImageData(0, 0, canvas.width, canvas.height)
    .data.some((part) => part !== 0);
