import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { type BenchCase, peersOr } from '../context.js';
import { type CommandRuns, measureBeside } from '../measure.js';
import type { Measurement } from '../result.js';

const IMAGES = 300;
/** The size of most photographs of COCO. */
const SIZE = { width: 640, height: 480 } as const;

const SCRIPT = `
import glob, sys, cv2, numpy as np
cv2.setNumThreads(1)
for path in glob.glob(sys.argv[1] + "/*"):
    image = cv2.imread(path)
    height, width = image.shape[:2]
    scale = min(640 / width, 640 / height)
    wide, high = round(width * scale), round(height * scale)
    left, top = (640 - wide) // 2, (640 - high) // 2
    small = cv2.resize(image, (wide, high), interpolation=cv2.INTER_LINEAR)
    canvas = cv2.copyMakeBorder(small, top, 640 - high - top, left, 640 - wide - left, cv2.BORDER_CONSTANT, value=(114, 114, 114))
    tensor = np.ascontiguousarray(canvas[:, :, ::-1].transpose(2, 0, 1)[None], dtype=np.float32) / 255
`;

/** JPEG files to input tensors, from process start to the last one. */
export const images: BenchCase = {
  name: 'images',
  run: async (context) => {
    const skipped: string[] = [];
    const folder = join(context.folder, 'images');
    try {
      await writeImages(folder);
      const child = join(context.root, 'build', 'bench', 'read-images.js');
      const peers = peersOr(context, skipped);
      const { ours, peer } = measureBeside(
        [process.execPath, child, join(context.root, 'dist'), folder],
        peers === undefined ? undefined : { name: 'OpenCV', argv: [peers.python, '-c', SCRIPT, folder] },
        context,
      );
      const rate = ({ median: { cpuSeconds, seconds } }: CommandRuns) => IMAGES / (cpuSeconds ?? seconds);
      const measurement: Measurement = {
        what: 'images a second of processor time',
        unit: 'images/s',
        ours: rate(ours),
        ...(peer === undefined ? {} : { peer: { name: peer.name, figure: rate(peer.runs) } }),
        bar: { limit: 60, better: 'higher' },
      };
      return {
        case: 'images',
        title: `${IMAGES} JPEG files of ${SIZE.width}x${SIZE.height} to tensors of 640x640`,
        commands: ['readImage, preprocess (yolo)', 'cv2.imread, resize, copyMakeBorder, numpy'],
        measurements: [measurement],
        skipped,
      };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** Noise over a gradient: files of some 100 kB, as photographs are. */
async function writeImages(folder: string): Promise<void> {
  mkdirSync(folder);
  for (let image = 0; image < IMAGES; image++) {
    const coarse = Buffer.alloc(80 * 60 * 3, 0).map(
      (_, at) => (at * 7 + image * 13 + ((at * at) % 251)) % 256,
    );
    await sharp(coarse, { raw: { width: 80, height: 60, channels: 3 } })
      .resize(SIZE.width, SIZE.height, { kernel: 'cubic' })
      .jpeg({ quality: 90 })
      .toFile(join(folder, `${image}.jpg`));
  }
}
