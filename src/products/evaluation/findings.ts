import { z } from 'zod';
import { formatCount } from '../../base/text/quantity.js';
import { TrtforgeError } from '../../errors.js';

/** Possible faults of data that is to be scored. An error ends the evaluation; a warning is counted in its result. */
const kinds = {
  'bad-record': { severity: 'error', what: 'records that lack a field or have an invalid value' },
  'duplicate-category-name': { severity: 'error', what: 'categories whose name an earlier one has' },
  'duplicate-file': { severity: 'error', what: 'images whose file is that of an earlier one' },
  'negative-size': { severity: 'error', what: 'boxes of negative width or height' },
  'duplicate-annotation-id': { severity: 'error', what: 'annotations whose id an earlier one has' },
  'missing-image': { severity: 'error', what: 'images that the instances lack' },
  'allowed-missing-image': {
    severity: 'warning',
    what: 'images that the instances lack, left out (--allow-missing)',
  },
  'missing-file': { severity: 'error', what: 'images whose file is missing' },
  'allowed-missing-file': {
    severity: 'warning',
    what: 'images whose file is missing, which were not run (--allow-missing)',
  },
  'unreadable-file': { severity: 'error', what: 'images whose file cannot be read' },
  'allowed-unreadable-file': {
    severity: 'warning',
    what: 'images whose file cannot be read, which were not run (--allow-missing)',
  },
  'label-without-category': {
    severity: 'warning',
    what: 'labels of the model that the instances lack, their detections left out',
  },
  'contradicting-label': {
    severity: 'warning',
    what: 'labels of --labels that the metadata of the model names otherwise',
  },
  'unknown-category': {
    severity: 'warning',
    what: 'detections of categories that the instances lack, left out',
  },
  'annotation-of-unknown-image': { severity: 'warning', what: 'annotations of unknown images, left out' },
  'annotation-of-unknown-category': {
    severity: 'warning',
    what: 'annotations of unknown categories, left out',
  },
  'assumed-box-form': {
    severity: 'warning',
    what: 'forms of boxes that their values do not decide, so that the usual one of the head was taken',
  },
  'other-size': {
    severity: 'warning',
    what: 'images of another size than the instances state (resized, or turned by EXIF), whose boxes are elsewhere',
  },
  'turned-image': {
    severity: 'warning',
    what: 'images turned by EXIF although their size is as stated or not stated, whose boxes are elsewhere if they are meant for the stored pixels',
  },
  'duplicate-image': { severity: 'warning', what: 'images listed again, counted once' },
  'duplicate-category': { severity: 'warning', what: 'categories listed again, counted once' },
  'computed-area': {
    severity: 'warning',
    what: 'annotations without an area, which is computed as width times height of the box',
  },
  'assumed-no-crowd': { severity: 'warning', what: 'annotations without iscrowd, counted as no crowd' },
  'boxes-like-corners': {
    severity: 'warning',
    what: 'lists whose boxes look like left, top, right, bottom; COCO has left, top, width, height, so their figures are wrong',
  },
  'boxes-from-0-to-1': {
    severity: 'warning',
    what: 'lists whose boxes are all from 0 to 1; COCO has pixels, so their figures are wrong',
  },
  'boxes-of-other-form': {
    severity: 'warning',
    what: 'lists whose boxes fit the annotations when they are read otherwise than as left, top, width, height, so their figures are wrong',
  },
  'score-outside': {
    severity: 'warning',
    what: 'detections whose score is not from 0 to 1: they are ordered by it as it is',
  },
  'annotation-id-0': {
    severity: 'warning',
    what: 'annotations with id 0, which count as never found (as in pycocotools); number them from 1',
  },
  'no-truth': { severity: 'warning', what: 'data sets without an annotation that counts' },
  'no-detections': { severity: 'warning', what: 'results without a detection to score' },
  'image-without-detections': { severity: 'warning', what: 'images with annotations and no detection' },
} as const satisfies Record<string, { readonly severity: 'error' | 'warning'; readonly what: string }>;

type FindingKind = keyof typeof kinds;

/** The kinds that --allow-missing covers, all of them together. */
const missingKinds = ['missing-image', 'missing-file', 'unreadable-file'] as const;
type MissingKind = (typeof missingKinds)[number];

const isMissing = (kind: FindingKind): kind is MissingKind => missingKinds.includes(kind as MissingKind);

export const findingSchema = z.object({
  kind: z.enum(Object.keys(kinds) as [FindingKind, ...FindingKind[]]),
  count: z.int().positive(),
  /** Its subject, in a phrase: "images listed again, counted once". */
  what: z.string(),
  /** The first few places: `annotations[3].area is missing`. */
  examples: z.array(z.string()),
});
export interface Finding extends z.infer<typeof findingSchema> {}

const EXAMPLES = 3;

/** The faults found in the data of one evaluation, counted by kind. */
export class Findings {
  readonly #allowMissing: number | null;
  readonly #missingImages = new Set<number>();
  readonly #found = new Map<FindingKind, { count: number; readonly examples: string[] }>();

  /** `allowMissing`: up to so many missing images are left out with a warning; null: none, and there is no option for it. */
  constructor(allowMissing: number | null = 0) {
    this.#allowMissing = allowMissing;
  }

  add(kind: FindingKind, example: string): void {
    const found = this.#found.get(kind) ?? { count: 0, examples: [] };
    this.#found.set(kind, found);
    found.count++;
    // Text from a file may be of any length.
    if (found.examples.length < EXAMPLES) found.examples.push(example.slice(0, 120));
  }

  /** An image that is needed (`place` names what needs it) and not there; each counts once. */
  addMissingImage(id: number, place: string): void {
    if (this.#missingImages.has(id)) return;
    this.#missingImages.add(id);
    this.add('missing-image', `image ${id} of ${place}`);
  }

  /** An image whose file cannot be read, with the error of reading it. */
  addUnreadableFile(id: number | string, { message }: TrtforgeError): void {
    this.add('unreadable-file', `image ${id}: ${message.replace(/\.$/, '')}`);
  }

  /** Throws TF_EVAL_DATA with all errors found so far, each kind with its count and first places. */
  throwErrors(path: string): void {
    const errors = this.#list('error');
    if (errors.length === 0) return;
    const sentences = errors.map(
      ({ count, what, examples }) =>
        `${formatCount(count)} ${what} (${examples.join(', ')}${count > examples.length ? ', …' : ''})`,
    );
    const onlyMissing = errors.every(({ kind }) => isMissing(kind));
    throw new TrtforgeError('TF_EVAL_DATA', `${path} cannot be scored: ${sentences.join('; ')}.`, {
      ...(onlyMissing && {
        remedy:
          this.#allowMissing === null
            ? 'Replace them, or take them out of the folder.'
            : `Add or replace them, or pass --allow-missing ${this.#missing} to score without them.`,
      }),
      details: { file: path, findings: errors },
    });
  }

  /** Whether no more images are missing than may be. */
  get allowsMissing(): boolean {
    return this.#missing <= (this.#allowMissing ?? 0);
  }

  get #missing(): number {
    return missingKinds.reduce((sum, kind) => sum + (this.#found.get(kind)?.count ?? 0), 0);
  }

  warnings = (): Finding[] => this.#list('warning');

  #list(severity: 'error' | 'warning'): Finding[] {
    return [...this.#found].flatMap(([found, { count, examples }]) => {
      const kind = isMissing(found) && this.allowsMissing ? (`allowed-${found}` as const) : found;
      return kinds[kind].severity === severity ? [{ kind, count, what: kinds[kind].what, examples }] : [];
    });
  }
}
