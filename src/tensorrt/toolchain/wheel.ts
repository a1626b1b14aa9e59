import { createHash } from 'node:crypto';
import { join } from 'node:path';
import {
  isUnsafeZipEntry,
  readZipDirectory,
  readZipEntry,
  type ZipEntry,
  zipEntryChunks,
} from '../../base/archive/zip.js';
import type { ByteSource } from '../../base/files/byte-source.js';
import { beginFile } from '../../base/files/publish.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';

/** A Python wheel: a ZIP archive whose RECORD lists every member with its SHA-256 (PyPA binary distribution format). */
export interface Wheel {
  readonly source: ByteSource;
  readonly packageName: string;
  readonly version: string;
  /** Platforms it is built for: `py3-none-manylinux_2_28_x86_64`. */
  readonly tags: readonly string[];
  readonly members: readonly WheelMember[];
  /** Bytes of all members, unpacked. */
  readonly bytes: number;
}

interface WheelMember {
  readonly entry: ZipEntry;
  /** Base64url SHA-256 that RECORD promises; null for RECORD itself. */
  readonly digest: string | null;
}

/** More than any honest wheel of TensorRT unpacks to (the largest seen is 4.4 GB). */
const MAX_UNPACKED_BYTES = 16 * 2 ** 30;
const MAX_TEXT_BYTES = 16 << 20;
/** Twice what wheels of TensorRT have and far below what a file system or the removal of a folder takes. */
const MOST_NAME_PARTS = 32;
const MOST_NAME_BYTES = 512;

/** Reads a wheel's directory, name, version and RECORD. Throws TF_ARCHIVE_INVALID or TF_TOOLCHAIN_MISMATCH. */
export function openWheel(source: ByteSource): Wheel {
  const entries = readZipDirectory(source).filter((entry) => !entry.name.endsWith('/'));
  const record = entries.find((entry) => /^[^/]+\.dist-info\/RECORD$/.test(entry.name));
  const metadata = entries.find((entry) => /^[^/]+\.dist-info\/METADATA$/.test(entry.name));
  const build = entries.find((entry) => /^[^/]+\.dist-info\/WHEEL$/.test(entry.name));
  if (record === undefined || metadata === undefined || build === undefined) {
    throw new TrtforgeError(
      'TF_TOOLCHAIN_MISMATCH',
      `${source.path} is not a Python wheel: it has no .dist-info with RECORD, METADATA and WHEEL.`,
    );
  }
  const about = readZipEntry(source, metadata, MAX_TEXT_BYTES).toString();
  const builtFor = readZipEntry(source, build, MAX_TEXT_BYTES).toString();
  const digests = recordDigests(readZipEntry(source, record, MAX_TEXT_BYTES).toString());
  const bytes = entries.reduce((sum, entry) => sum + entry.size, 0);
  assertSafeMembers(source, entries, bytes);
  const members = entries.map((entry) => ({
    entry,
    digest: entry === record ? null : promisedDigest(source, entry, digests),
  }));
  return {
    source,
    packageName: normalName(field(about, 'Name')),
    version: field(about, 'Version'),
    tags: [...builtFor.matchAll(/^Tag:[ \t]*(\S+)/gm)].map((match) => match[1] ?? ''),
    members,
    bytes,
  };
}

/** The package index treats `-`, `_` and `.` and letter case alike (PyPA name normalization). */
function normalName(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, '-');
}

/**
 * Writes every member under `folder`, checking size, CRC-32 and SHA-256 on the way. Emits `progress` in bytes.
 * Throws TF_TOOLCHAIN_MISMATCH, TF_ARCHIVE_INVALID, TF_WRITE_FAILED or TF_CANCELLED; the caller removes the folder.
 */
export async function unpackWheel(
  wheel: Wheel,
  folder: string,
  emit: EventListener,
  signal: AbortSignal,
): Promise<void> {
  let done = 0;
  for (const { entry, digest } of wheel.members) {
    const hash = createHash('sha256');
    const file = beginFile(join(folder, entry.name));
    try {
      for await (const chunk of zipEntryChunks(wheel.source, entry)) {
        throwIfCancelled(signal, `unpacking ${entry.name}`);
        hash.update(chunk);
        file.write(chunk);
        done += chunk.length;
        emit({ type: 'progress', phase: 'unpack', done, total: wheel.bytes, detail: entry.name });
      }
      if (digest !== null && hash.digest('base64url') !== digest) throw mismatch(wheel.source, entry);
      file.publish();
    } catch (error) {
      file.discard();
      throw error;
    }
  }
}

function assertSafeMembers(source: ByteSource, entries: readonly ZipEntry[], bytes: number): void {
  const why = whyUnsafe(entries, bytes);
  if (why !== null) throw new TrtforgeError('TF_ARCHIVE_INVALID', `${source.path} is not unpacked: ${why}.`);
}

function whyUnsafe(entries: readonly ZipEntry[], bytes: number): string | null {
  const names = new Set(entries.map((entry) => entry.name));
  const unsafe = entries.find(isUnsafeZipEntry);
  const tooLong = entries.find(
    ({ name }) => name.split('/').length > MOST_NAME_PARTS || Buffer.byteLength(name) > MOST_NAME_BYTES,
  );
  if (unsafe !== undefined)
    return `its member "${unsafe.name}" would be written outside the folder or is a link`;
  if (tooLong !== undefined)
    return `the name of its member "${tooLong.name.slice(0, 100)}…" has more than ${MOST_NAME_PARTS} parts or ${MOST_NAME_BYTES} bytes`;
  if (names.size !== entries.length) return 'it has two members of one name';
  return bytes > MAX_UNPACKED_BYTES ? `it would unpack to ${bytes} bytes` : null;
}

/** RECORD is CSV: `path,sha256=<base64url>,size`; a path with a comma stands in quotes. */
function recordDigests(text: string): ReadonlyMap<string, string> {
  const digests = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const match = /^(?:"((?:[^"]|"")*)"|([^,]*)),sha256=([A-Za-z0-9_-]+),/.exec(line);
    if (match?.[3] === undefined) continue;
    digests.set(match[1]?.replaceAll('""', '"') ?? match[2] ?? '', match[3]);
  }
  return digests;
}

function promisedDigest(
  source: ByteSource,
  entry: ZipEntry,
  digests: ReadonlyMap<string, string>,
): string | null {
  const digest = digests.get(entry.name);
  if (digest !== undefined) return digest;
  if (/^[^/]+\.dist-info\/RECORD\.(jws|p7s)$/.test(entry.name)) return null;
  throw new TrtforgeError(
    'TF_TOOLCHAIN_MISMATCH',
    `${source.path} holds ${entry.name}, which its RECORD does not list with a SHA-256.`,
  );
}

function mismatch(source: ByteSource, entry: ZipEntry): TrtforgeError {
  return new TrtforgeError(
    'TF_TOOLCHAIN_MISMATCH',
    `${entry.name} in ${source.path} differs from the wheel's RECORD (SHA-256).`,
  );
}

function field(metadata: string, name: string): string {
  const line = metadata.split('\n').find((each) => each.startsWith(`${name}:`));
  return line?.slice(name.length + 1).trim() ?? '';
}
