import type { Reference } from './reference.js';
import { isCompactReference, openCompactReference } from './reference-compact.js';
import { openJsonlReference } from './reference-jsonl.js';

/** Opens a reference of either form. */
export const openReference = (path: string): Reference =>
  isCompactReference(path) ? openCompactReference(path) : openJsonlReference(path);
