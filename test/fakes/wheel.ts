import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zipWriter } from '../../src/base/archive/zip-writer.js';
import { beginFile } from '../../src/base/files/publish.js';
import { fakeElf } from './elf.js';

/** A ZIP archive of members, as bytes. */
export function zipBytes(
  members: Readonly<Record<string, Uint8Array>>,
  method: 'stored' | 'deflate',
): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-zip-'));
  try {
    const path = join(folder, 'archive.zip');
    const file = beginFile(path);
    const writer = zipWriter(file);
    for (const [name, content] of Object.entries(members)) writer.add(name, [content], method);
    writer.finish();
    file.publish();
    return readFileSync(path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export interface FakeWheel {
  readonly packageName?: string;
  readonly version?: string;
  readonly tag?: string;
  readonly machine?: 'x64' | 'arm64';
  /** Members besides the libraries and the record. */
  readonly more?: Readonly<Record<string, Uint8Array>>;
  /** Changes the RECORD's text. */
  readonly record?: (text: string) => string;
}

/** Writes a wheel laid out like NVIDIA's tensorrt-rtx wheel, with small libraries, and returns its path. */
export function writeWheel(folder: string, fake: FakeWheel = {}): string {
  const { packageName = 'tensorrt_rtx_cu13_libs', version = '1.9.0.1', machine } = fake;
  const { tag = 'py3-none-manylinux_2_28_x86_64', more = {}, record = (text) => text } = fake;
  const about = `${packageName}-${version}.dist-info`;
  const members: Record<string, Uint8Array> = {
    [`${about}/licenses/LICENSE.txt`]: Buffer.from('The licence.\n'),
    'tensorrt_rtx_libs/__init__.py': Buffer.from(''),
    'tensorrt_rtx_libs/libtensorrt_rtx.so.1': fakeElf({
      soname: 'libtensorrt_rtx.so.1',
      symbols: { [`tensorrt_version_${version.replaceAll('.', '_')}`]: null },
      machine,
    }),
    'tensorrt_rtx_libs/libtensorrt_onnxparser_rtx.so.1': fakeElf({
      soname: 'libtensorrt_onnxparser_rtx.so.1',
      machine,
    }),
    ...more,
    [`${about}/METADATA`]: Buffer.from(`Metadata-Version: 2.4\nName: ${packageName}\nVersion: ${version}\n`),
    [`${about}/WHEEL`]: Buffer.from(`Wheel-Version: 1.0\nTag: ${tag}\n`),
  };
  const lines = Object.entries(members).map(([name, content]) => {
    const digest = createHash('sha256').update(content).digest('base64url');
    return `${name},sha256=${digest},${content.length}`;
  });
  members[`${about}/RECORD`] = Buffer.from(record(`${[...lines, `${about}/RECORD,,`].join('\n')}\n`));
  const path = join(folder, `${packageName}-${version}-${tag}.whl`);
  writeFileSync(path, zipBytes(members, 'deflate'));
  return path;
}
