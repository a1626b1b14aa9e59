import { sha256 } from '../base/files/digest.js';
import { TrtforgeError } from '../errors.js';
import { readAudio } from '../formats/audio/read-audio.js';
import { readImageFile, thumbnail } from '../formats/images/image.js';
import type { WorstSample } from '../quality/verify/result.js';
import type { Pictures, ShownFile } from './chart/prediction.js';
import { type Blocks, type Page, present } from './section.js';

/** Longer side of a picture on a page, in pixels. */
const SIDE = 480;
/** Of the pictures of a page together, as text. */
const MOST_BYTES = 2_000_000;
/** JPEG's, and the one that a picture gets which takes more than its share. */
const [QUALITY, LOW_QUALITY] = [72, 35];
const SHARE = MOST_BYTES / 12;
/** Of the outline of a recording. */
const COLUMNS = 480;

/**
 * The files of a page's samples, in small: they are read when the page is made, and a result has none of their pixels. Only a file of the recorded digest is
 * shown, so that a page never has another file than the one that was judged; what cannot be shown is named with the reason.
 */
export async function loadPictures({ sections }: Page): Promise<Pictures> {
  const pictures = new Map<string, ShownFile>();
  let left = MOST_BYTES;
  for (const sample of present(sections).flatMap(({ blocks }) => samplesIn(blocks))) {
    if (pictures.has(sample.sha256)) continue;
    const shown = await shownFile(sample);
    const bytes = 'uri' in shown ? shown.uri.length : 0;
    const isKept = bytes <= left;
    if (isKept) left -= bytes;
    pictures.set(sample.sha256, isKept ? shown : { why: 'Not shown: the pictures of the page take 2 MB.' });
  }
  return pictures;
}

const samplesIn = (blocks: Blocks): readonly WorstSample[] =>
  present(blocks).flatMap((block) => {
    if (block.kind === 'samples') return block.samples;
    if (block.kind === 'fold') return samplesIn(block.blocks);
    return block.kind === 'part' ? samplesIn(block.section.blocks) : [];
  });

async function shownFile({ file, sha256: recorded, size }: WorstSample): Promise<ShownFile> {
  try {
    const bytes = readImageFile(file);
    if (sha256(bytes) !== recorded) return { why: `${file} is another file than the one that was judged.` };
    if (size === null) return await peaksOf(file);
    const small = (quality: number) => thumbnail(file, bytes, { side: SIDE, quality });
    const first = await small(QUALITY);
    const uri = (jpeg: Buffer) => `data:image/jpeg;base64,${jpeg.toString('base64')}`;
    return { ...size, uri: uri(first.length * (4 / 3) <= SHARE ? first : await small(LOW_QUALITY)) };
  } catch (error) {
    if (error instanceof TrtforgeError) return { why: `Not shown: ${error.message}` };
    throw error;
  }
}

async function peaksOf(path: string): Promise<ShownFile> {
  const { samples, rate } = await readAudio(path);
  const columns = Math.min(COLUMNS, samples.length);
  const peaks = Array.from({ length: columns }, (_, column): readonly [number, number] => {
    let [low, high] = [0, 0];
    const [from, to] = [column, column + 1].map((edge) => Math.floor((edge * samples.length) / columns));
    for (let at = from!; at < to!; at++) {
      low = Math.min(low, samples[at]!);
      high = Math.max(high, samples[at]!);
    }
    return [low, high];
  });
  return { peaks, seconds: samples.length / rate };
}
