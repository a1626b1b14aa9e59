import { describe, expect, test } from 'vitest';
import { type CocoData, cocoData } from '../../../../bench/coco-data.js';
import { TrtforgeError } from '../../../../src/errors.js';
import { type CocoRequest, evaluateCoco } from '../../../../src/products/evaluation/coco/coco.js';
import type { CocoResult } from '../../../../src/products/evaluation/coco/result.js';
import type { Finding } from '../../../../src/products/evaluation/findings.js';
import { dataOf, fileOf } from './sets.js';

const BOX: [number, number, number, number] = [10, 10, 50, 50];
const found = dataOf([{ bbox: BOX }], [{ bbox: BOX }]);
const evaluate = (
  { instances, detections }: { readonly instances: unknown; readonly detections: unknown },
  more: Partial<CocoRequest> = {},
): Promise<CocoResult> =>
  evaluateCoco({ instances: fileOf(instances), detections: fileOf(detections), ...more });

/** Kind, count and first example of each warning. */
const warnings = (result: CocoResult) =>
  result.warnings.map(({ kind, count, examples }) => [kind, count, examples[0]]);

/** Code of the error, and kind, count and first example of each finding behind it. */
async function refusal(evaluation: Promise<CocoResult>) {
  const error = await evaluation.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(error instanceof TrtforgeError)) throw error ?? new Error('nothing was rejected');
  const findings = (error.details?.findings ?? []) as readonly Finding[];
  return [error.code, ...findings.map(({ kind, count, examples }) => [kind, count, examples[0]])];
}

/** The data with one record of it changed: undefined removes a field. */
const withAnnotation = (change: object): CocoData => ({
  ...found,
  instances: {
    ...found.instances,
    annotations: found.instances.annotations.map((annotation) => ({ ...annotation, ...change })),
  },
});
const withDetection = (change: object) => ({
  ...found,
  detections: found.detections.map((detection) => ({ ...detection, ...change })),
});

describe('records that pycocotools crashes on or scores in silence are errors', () => {
  test.each<[string, { readonly instances: unknown; readonly detections: unknown }, string, string]>([
    ['iscrowd 2', withAnnotation({ iscrowd: 2 }), 'bad-record', 'annotations[0].iscrowd is not 0 or 1'],
    [
      'an area of text',
      withAnnotation({ area: '9' }),
      'bad-record',
      'annotations[0].area is not a finite number, but the text "9"',
    ],
    ['no id', withAnnotation({ id: undefined }), 'bad-record', 'annotations[0].id is missing'],
    [
      'a box of three',
      withAnnotation({ bbox: [1, 2, 3] }),
      'bad-record',
      'annotations[0].bbox is not a list of four numbers below 1e100',
    ],
    [
      'a negative width',
      withAnnotation({ bbox: [1, 2, -3, 4] }),
      'negative-size',
      'annotations[0].bbox of -3 by 4',
    ],
    [
      'an annotation that is no object',
      { ...found, instances: { ...found.instances, annotations: [7] } },
      'bad-record',
      'annotations[0] is not an object',
    ],
    [
      'an image id of text',
      withDetection({ image_id: '1' }),
      'bad-record',
      'detections[0].image_id is not a whole number, but the text "1"',
    ],
    [
      'an image id beyond 2^53',
      withDetection({ image_id: 2 ** 53 }),
      'bad-record',
      'detections[0].image_id is not a whole number',
    ],
    ['no score', withDetection({ score: undefined }), 'bad-record', 'detections[0].score is missing'],
    [
      'a score of text',
      withDetection({ score: '0.5' }),
      'bad-record',
      'detections[0].score is not a finite number, but the text "0.5"',
    ],
    [
      'an empty box',
      withDetection({ bbox: [] }),
      'bad-record',
      'detections[0].bbox is not a list of four numbers below 1e100',
    ],
    [
      'a negative height',
      withDetection({ bbox: [1, 2, 3, -4] }),
      'negative-size',
      'detections[0].bbox of 3 by -4',
    ],
    [
      'an image that the instances lack',
      withDetection({ image_id: 9 }),
      'missing-image',
      'image 9 of detections[0]',
    ],
  ])('%s', async (_, data, kind, example) => {
    expect(await refusal(evaluate(data))).toEqual(['TF_EVAL_DATA', [kind, 1, example]]);
  });

  test('a score of NaN, as Python writes it', async () => {
    const text = JSON.stringify(found.detections).replace('0.5', 'NaN');
    const evaluation = evaluateCoco({ instances: fileOf(found.instances), detections: fileOf(text) });
    expect(await refusal(evaluation)).toEqual([
      'TF_EVAL_DATA',
      ['bad-record', 1, 'detections[0].score is not a finite number'],
    ]);
  });

  test('an annotation id that is used twice', async () => {
    const data = dataOf([{ bbox: BOX }, { bbox: BOX, id: 1 }], [{ bbox: BOX }]);
    expect(await refusal(evaluate(data))).toEqual([
      'TF_EVAL_DATA',
      ['duplicate-annotation-id', 1, 'annotations[1].id is 1'],
    ]);
  });

  test('all of a file are counted, with the first places', async () => {
    const detections = Array.from({ length: 50 }, () => ({ image_id: 1, category_id: 1, bbox: BOX }));
    expect(await refusal(evaluate({ ...found, detections }))).toEqual([
      'TF_EVAL_DATA',
      ['bad-record', 50, 'detections[0].score is missing'],
    ]);
  });
});

describe('files of another kind are errors', () => {
  test.each([
    ['nothing', ''],
    ['no JSON', 'image_id,score'],
    ['an object without lists', '{}'],
    ['lists of other names', '{"images": [], "annotations": []}'],
    ['a file cut short', JSON.stringify(found.instances).slice(0, -9)],
    ['a comma too many', JSON.stringify(found.instances).replace(']', ',]')],
    ['two documents', `${JSON.stringify(found.instances)}{}`],
    ['brackets without end', '['.repeat(100_000)],
    ['brackets without beginning', ']'],
    ['a name without end twice', `{"${'x'.repeat(1000)}": [], "${'x'.repeat(1000)}": []}`],
    ['text in quotes', '"images"'],
  ])('instances: %s', async (_, text) => {
    const evaluation = evaluateCoco({ instances: fileOf(text), detections: fileOf([]) });
    expect(await refusal(evaluation)).toEqual(['TF_EVAL_DATA']);
  });

  test.each([
    ['an object', '{"annotations": []}'],
    ['a list cut short', '[{"image_id": 1'],
    ['no JSON behind it', '[]]'],
  ])('results: %s', async (_, text) => {
    const evaluation = evaluateCoco({ instances: fileOf(found.instances), detections: fileOf(text) });
    expect(await refusal(evaluation)).toEqual(['TF_EVAL_DATA']);
  });
});

describe('what is odd is scored as pycocotools scores it, and counted', () => {
  test('no detections are a score of 0', async () => {
    const result = await evaluate({ ...found, detections: [] });
    expect(result.metrics.mAP_50_95).toBe(0);
    expect(result.exitCode).toBe(0);
    expect(warnings(result)).toEqual([['no-detections', 1, '2 images']]);
  });

  test('no annotations are no score, which decides nothing', async () => {
    const result = await evaluate(dataOf([], [{ bbox: BOX }]));
    expect(result.stats).toEqual(Array(12).fill(-1));
    expect(result.metrics.mAP_50_95).toBeNull();
    expect(result.precision).toBeNull();
    expect(result.exitCode).toBe(4);
    expect(warnings(result)).toEqual([['no-truth', 1, '2 images']]);
  });

  test('detections of an unknown category, images and categories listed twice, annotations of neither, an id of 0', async () => {
    const data = dataOf(
      [{ bbox: BOX }, { bbox: BOX, id: 0 }, { bbox: BOX, image_id: 8 }, { bbox: BOX, category_id: 8 }],
      [{ bbox: BOX }, { bbox: BOX, category_id: 2 }],
    );
    const { images, categories, annotations } = data.instances;
    const result = await evaluate({
      ...data,
      instances: { annotations, images: [...images, images[0]], categories: [...categories, categories[1]] },
    });
    expect(warnings(result)).toEqual([
      ['duplicate-image', 1, 'images[2].id is 1'],
      ['duplicate-category', 1, 'categories[2].id is 3'],
      ['annotation-id-0', 1, 'image 1'],
      ['annotation-of-unknown-image', 1, 'annotation 3 of image 8'],
      ['annotation-of-unknown-category', 1, 'annotation 4 of category 8'],
      ['unknown-category', 1, 'detections[1].category_id is 2'],
    ]);
    expect(result.metrics.num_detections).toBe(1);
    expect(result.perClass.map(({ id, annotations }) => [id, annotations])).toEqual([
      [1, 2],
      [3, 0],
    ]);
  });

  test('images with annotations and without detections, where others have some', async () => {
    const data = dataOf([{ bbox: BOX }, { bbox: BOX, image_id: 2 }], [{ bbox: BOX }]);
    expect(warnings(await evaluate(data))).toEqual([['image-without-detections', 1, 'image 2']]);
  });

  test('annotations without area and iscrowd are scored as with those of their boxes', async () => {
    const result = await evaluate(withAnnotation({ area: undefined, iscrowd: undefined }));
    const whole = await evaluate(withAnnotation({ area: BOX[2] * BOX[3], iscrowd: 0 }));
    expect(warnings(result)).toEqual([
      ['computed-area', 1, 'annotations[0]'],
      ['assumed-no-crowd', 1, 'annotations[0]'],
    ]);
    expect([result.stats, result.dataDigest]).toEqual([whole.stats, whole.dataDigest]);
  });

  describe('boxes that look like corners are named', () => {
    const boxes: (typeof BOX)[] = [
      [300, 200, 100, 80],
      [20, 30, 50, 40],
      [400, 300, 200, 100],
      [250, 10, 150, 60],
    ];
    const corners = boxes.map(([x, y, w, h]): typeof BOX => [x, y, x + w, y + h]);
    const set = (annotations: typeof boxes, detections: typeof boxes, size: object) => {
      const data = dataOf(
        annotations.map((bbox) => ({ bbox })),
        detections.map((bbox) => ({ bbox })),
      );
      const images = data.instances.images.map((image) => ({ ...image, ...size }));
      return evaluate({ ...data, instances: { ...data.instances, images } });
    };
    const listsOf = async (...data: Parameters<typeof set>) =>
      (await set(...data)).warnings
        .filter(({ kind }) => kind === 'boxes-like-corners')
        .map(({ count, examples }) => [count, ...examples.map((example) => example.split(':')[0])]);

    test.each([
      ['of a stated size', { width: 640, height: 480 }],
      ['of no stated size', {}],
    ])('in images %s', async (_, size) => {
      expect(await listsOf(boxes, corners, size)).toEqual([[1, 'detections']]);
      expect(await listsOf(corners, boxes, size)).toEqual([[1, 'annotations']]);
      expect(await listsOf(corners, corners, size)).toEqual([[2, 'annotations', 'detections']]);
      expect(await listsOf(boxes, boxes, size)).toEqual([]);
    });

    test('and one large object in the middle is not', async () => {
      const large: typeof boxes = [[100, 100, 440, 280]];
      expect(await listsOf(large, large, { width: 640, height: 480 })).toEqual([]);
      expect(await listsOf(large, large, {})).toEqual([]);
    });
  });

  describe('boxes of another form than COCO’s are named by what they fit', () => {
    const boxes: (typeof BOX)[] = [
      [300, 200, 100, 80],
      [20, 130, 50, 40],
      [400, 300, 200, 100],
      [250, 110, 150, 60],
    ];
    const kindsOf = async (detections: readonly (readonly number[])[], score = 0.5) => {
      const data = dataOf(
        boxes.map((bbox) => ({ bbox })),
        detections.map((bbox) => ({ bbox: bbox as typeof BOX, score })),
      );
      return (await evaluate(data)).warnings.map(({ kind, examples: [first = ''] }) => [
        kind,
        /read as (\w+)/.exec(first)?.[1],
      ]);
    };

    test.each<[string, (box: typeof BOX) => readonly number[], unknown]>([
      ['none', (box) => box, []],
      ['boxes elsewhere', ([x, y, w, h]) => [x + w, y, w, h], []],
      ['centre', ([x, y, w, h]) => [x + w / 2, y + h / 2, w, h], [['boxes-of-other-form', 'centre']]],
      ['padding of a square of 640', ([x, y, w, h]) => [x, y + 80, w, h], [['boxes-of-other-form', 'boxes']]],
      ['x and y exchanged', ([x, y, w, h]) => [y, x, h, w], [['boxes-of-other-form', 'top']]],
      ['shares', ([x, y, w, h]) => [x / 640, y / 480, w / 640, h / 480], [['boxes-from-0-to-1', undefined]]],
    ])('%s', async (_, change, expected) => {
      expect(await kindsOf(boxes.map(change))).toEqual(expected);
    });

    test.each([90, -1])('a score of %d is named', async (score) => {
      expect(await kindsOf(boxes, score)).toEqual([['score-outside', undefined]]);
    });
  });

  test('detections beyond 100 of an image and category count in no figure', async () => {
    const away: typeof BOX = [300, 300, 5, 5];
    const detections = Array.from({ length: 105 }, (_, n) => ({
      bbox: n === 104 ? BOX : away,
      score: 1 - n / 200,
    }));
    const data = dataOf([{ bbox: BOX }], detections);
    const { metrics, beyondLimit } = await evaluate(data);
    expect(metrics).toMatchObject({ num_detections: 105, mAP_50: 0 });
    expect(beyondLimit).toBe(5);
  });
});

test('ends where it is cancelled', async () => {
  const request = { instances: fileOf(found.instances), detections: fileOf(found.detections) };
  expect(await refusal(evaluateCoco(request, { signal: AbortSignal.abort() }))).toEqual(['TF_CANCELLED']);
});

describe('images that the instances lack', () => {
  const twoUnknown = {
    ...found,
    detections: [
      ...found.detections,
      { image_id: 8, category_id: 1, bbox: BOX, score: 1 },
      { image_id: 9, category_id: 1, bbox: BOX, score: 1 },
      { image_id: 9, category_id: 1, bbox: BOX, score: 1 },
    ],
  };

  test('are left out up to the number allowed, each counted once', async () => {
    expect(await refusal(evaluate(twoUnknown, { allowMissing: 1 }))).toEqual([
      'TF_EVAL_DATA',
      ['missing-image', 2, 'image 8 of detections[1]'],
    ]);
    await expect(evaluate(twoUnknown)).rejects.toMatchObject({
      remedy: expect.stringContaining('--allow-missing 2'),
    });
    const result = await evaluate(twoUnknown, { allowMissing: 2 });
    expect(warnings(result)).toEqual([['allowed-missing-image', 2, 'image 8 of detections[1]']]);
    expect(result.stats).toEqual((await evaluate(found)).stats);
  });

  test('count likewise in a list of ids', async () => {
    const imageIds = fileOf('1 # the first\n\n9\n');
    expect(await refusal(evaluate(found, { imageIds }))).toEqual([
      'TF_EVAL_DATA',
      ['missing-image', 1, 'image 9 of the list of ids'],
    ]);
    expect(warnings(await evaluate(found, { imageIds, allowMissing: 1 }))).toEqual([
      ['allowed-missing-image', 1, 'image 9 of the list of ids'],
    ]);
  });
});

describe('a subset', () => {
  const data = cocoData({
    seed: 5,
    images: 20,
    categories: 4,
    annotations: 100,
    detections: 400,
    scoreDecimals: 6,
  });
  const ids = data.instances.images.map(({ id }) => id);
  const some = new Set(ids.slice(3, 11));

  test('is scored as if the files had nothing else, and states it', async () => {
    const part = {
      instances: {
        ...data.instances,
        images: data.instances.images.filter(({ id }) => some.has(id)),
        annotations: data.instances.annotations.filter((each) => some.has(each.image_id)),
      },
      detections: data.detections.filter((each) => some.has(each.image_id)),
    };
    const listed = await evaluate(data, { imageIds: fileOf([...some].join('\n')) });
    const cut = await evaluate(part);
    expect(listed).toMatchObject({ subset: true, imagesOfInstances: 20, samples: 8 });
    expect(cut).toMatchObject({ subset: false, imagesOfInstances: 8, samples: 8 });
    for (const field of ['stats', 'perClass', 'dataDigest', 'comparabilityKey', 'metrics'] as const)
      expect(listed[field]).toEqual(cut[field]);
  });

  test.each([
    ['a word', '1\nfirst'],
    ['a fraction', '1.5'],
    ['nothing but comments', '# none\n'],
  ])('is rejected where its list has %s', async (_, text) => {
    expect(await refusal(evaluate(data, { imageIds: fileOf(text) }))).toEqual(['TF_EVAL_DATA']);
  });
});

describe('the digest of the data', () => {
  const data = cocoData({
    seed: 6,
    images: 9,
    categories: 3,
    annotations: 30,
    detections: 60,
    scoreDecimals: 2,
  });
  const { images, categories, annotations } = data.instances;
  const digestOf = async (instances: unknown) => (await evaluate({ ...data, instances })).dataDigest;
  const changed = (change: object) => ({
    ...data.instances,
    annotations: annotations.map((each, index) => (index === 4 ? { ...each, ...change } : each)),
  });

  test('does not depend on how the file is written', async () => {
    const digest = await digestOf(data.instances);
    const others: readonly unknown[] = [
      JSON.stringify({ info: { year: 2017 }, annotations, categories, images }, null, 1),
      { ...data.instances, images: images.toReversed(), categories: categories.toReversed() },
      {
        ...data.instances,
        annotations: annotations.map((each) => ({ segmentation: [], ...each, id: each.id && each.id + 70 })),
      },
      { ...data.instances, annotations: annotations.toSorted((a, b) => b.image_id - a.image_id) },
    ];
    for (const other of others) expect(await digestOf(other)).toBe(digest);
  });

  test.each<[string, unknown]>([
    ['a box', changed({ bbox: [1, 2, 3, 4] })],
    ['an area', changed({ area: 5 })],
    ['a crowd flag', changed({ iscrowd: 1 })],
    [
      'a category',
      changed({
        category_id:
          categories[0]!.id === annotations[4]!.category_id ? categories[1]!.id : categories[0]!.id,
      }),
    ],
    [
      'an id of 0',
      { ...data.instances, annotations: annotations.map((each) => ({ ...each, id: each.id + 1 })) },
    ],
    ['an image more', { ...data.instances, images: [...images, { id: 999 }] }],
    ['an annotation less', { ...data.instances, annotations: annotations.slice(1) }],
  ])('depends on %s', async (_, instances) => {
    expect(await digestOf(instances)).not.toBe(await digestOf(data.instances));
  });

  test('makes the key of comparable results, whatever was detected', async () => {
    const one = await evaluate(data);
    const other = await evaluate({ ...data, detections: data.detections.slice(9) });
    expect(other.comparabilityKey).toBe(one.comparabilityKey);
    expect(other.stats).not.toEqual(one.stats);
  });
});
