/** The types of `probes.js`, which is JavaScript because it runs in a page and the project's types are Node's. */
export function contrasts(): { readonly text: string; readonly ratio: number }[];
export function overlappingLabels(): string[];
export function labelPlaces(): { readonly text: string; readonly left: number; readonly right: number }[];
export function scrollToEnd(): void;
export function openEverything(): void;
export function pageWidth(): number;
export function paperColor(): string;
export function selectedText(): string;
export function captionNumbers(): string[];
export function clipboardText(): Promise<string>;
export function forbidClipboard(): void;
export function columnShown(cell: unknown): string;
export function isDrawn(canvas: unknown): boolean;
