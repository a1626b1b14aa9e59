import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { openFile } from '../../base/files/byte-source.js';
import { sha256OfRange } from '../../base/files/digest.js';
import { removeIfAllowed } from '../../base/files/files.js';
import { makeFolder } from '../../base/files/folders.js';
import { publishFile, syncFolder, UNPUBLISHED_SUFFIX, writeFailed } from '../../base/files/publish.js';
import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf, optional } from '../../base/options/option.js';
import { type Processor, processorOf } from '../../behaviour/facts.js';
import { isVersion } from '../../behaviour/versions.js';
import { systemErrorCode, TrtforgeError } from '../../errors.js';
import { inPhase, type Work, workOf } from '../../events.js';
import { pipWheels, type WheelSource } from './download-wheel.js';
import { unknownVersion } from './find.js';
import { readManifest, type ToolchainManifest } from './manifest.js';
import { MANIFEST_NAME, toolchainFolder, toolchainsFolder } from './places.js';
import { type PinnedWheel, type Release, releaseOf, tensorrtRtxLicense, wheelTag } from './releases.js';
import { openWheel, unpackWheel, type Wheel } from './wheel.js';

export const installOptions = {
  /** Version of tensorrt-rtx; the newest that trtforge knows when absent. */
  version: optional(is.text, {
    flags: '--version <version>',
    describe: 'which release; the newest that trtforge knows by default',
    parse: parseFullVersion,
  }),
  acceptLicense: needed(is.flag, {
    flags: '--accept-license',
    describe: "accept NVIDIA's licence",
    trust: true,
  }),
  /** A wheel already at hand, instead of a download. */
  wheel: optional(is.text, {
    flags: '--wheel <file>',
    trust: true,
    describe: 'a wheel on this machine, instead of a download with pip',
  }),
  /** The folder of toolchains, in which the new one becomes a folder; trtforge's own by default. */
  folder: optional(is.text),
  /** The user's command line, so that the licence error can print the exact command. */
  command: optional(is.text),
};

export interface InstallRequest extends OptionsOf<typeof installOptions> {}

export interface InstallEnvironment extends Work {
  readonly platform: string;
  readonly architecture: string;
  readonly wheels: WheelSource;
  readonly now: () => Date;
}

export interface InstalledToolchain {
  readonly folder: string;
  readonly manifest: ToolchainManifest;
  /** False when this version stood there already. */
  readonly isNew: boolean;
}

/** The plan of an installation: its release, its place, and what stands there already. */
export interface PlannedInstallation {
  readonly release: Release;
  readonly processor: Processor;
  /** The wheel that it has to be; null where none is pinned. */
  readonly pinned: PinnedWheel | null;
  /** The folder of toolchains. */
  readonly parent: string;
  readonly folder: string;
  readonly present: ToolchainManifest | undefined;
}

/** Decides an installation and writes nothing. Errors: TF_PLATFORM_UNSUPPORTED, TF_USAGE, TF_TOOLCHAIN_MISMATCH, and those of reading a wheel. */
export function planInstallation(
  request: Pick<InstallRequest, 'folder' | 'wheel' | 'version'>,
  machine: Pick<InstallEnvironment, 'platform' | 'architecture'> = thisMachine(),
): PlannedInstallation {
  const parent = request.folder ?? toolchainsFolder();
  const processor = servedProcessor(machine);
  const asked = releaseOf(request.version);
  const release =
    request.wheel === undefined ? asked : releaseOfWheel(request.wheel, request.version, processor);
  assertVersion(release);
  const folder = toolchainFolder(parent, release, processor);
  const pinned = release.wheels?.[processor] ?? null;
  return { release, processor, pinned, parent, folder, present: readManifest(folder) };
}

/**
 * Installs tensorrt-rtx: gets the wheel, checks it, unpacks beside the final folder, renames. An interrupted run leaves nothing trusted.
 * Errors: TF_PLATFORM_UNSUPPORTED, TF_USAGE for a version that trtforge cannot drive, TF_LICENSE_NOT_ACCEPTED, TF_DOWNLOAD_FAILED, TF_TOOLCHAIN_MISMATCH, TF_ARCHIVE_INVALID, TF_WRITE_FAILED, TF_CANCELLED.
 */
export async function installToolchain(
  request: InstallRequest,
  overrides: Partial<InstallEnvironment> = {},
): Promise<InstalledToolchain> {
  const environment = { ...thisMachine(), ...overrides };
  const planned = planInstallation(request, environment);
  const { release, parent, folder, present } = planned;
  if (present !== undefined) return { folder, manifest: present, isNew: false };
  if (!request.acceptLicense) throw licenseNotAccepted(request, release);

  const workspace = makeWorkspace(parent, release);
  try {
    const wheelPath = await obtainWheel(request, planned, workspace, environment);
    const unpacked = join(workspace, 'unpacked');
    const manifest = await unpackChecked(wheelPath, unpacked, planned, environment);
    return publishFolder(unpacked, folder, manifest);
  } finally {
    removeIfAllowed(workspace);
  }
}

const thisMachine = (): InstallEnvironment => ({
  platform: process.platform,
  architecture: process.arch,
  wheels: pipWheels,
  now: () => new Date(),
  ...workOf(),
});

/** The processor of a machine that tensorrt-rtx is for. Throws TF_PLATFORM_UNSUPPORTED. */
function servedProcessor({
  platform,
  architecture,
}: Pick<InstallEnvironment, 'platform' | 'architecture'>): Processor {
  const processor = processorOf(architecture);
  if (platform === 'linux' && processor !== undefined) return processor;
  throw new TrtforgeError(
    'TF_PLATFORM_UNSUPPORTED',
    `trtforge installs tensorrt-rtx on Linux, on x86-64 and aarch64; this is ${platform} on ${architecture}.`,
    {
      remedy: 'Use such a machine or container for build; inspect, convert and verify work here without it.',
    },
  );
}

function assertVersion(release: Release): void {
  const why = unknownVersion(release);
  if (why === null) return;
  throw new TrtforgeError('TF_USAGE', `tensorrt-rtx ${release.version} is not installed: ${why}.`, {
    remedy: `Leave --version out to get ${releaseOf(undefined).version}.`,
  });
}

function licenseNotAccepted(request: InstallRequest, release: Release): TrtforgeError {
  const { owner, name, url } = tensorrtRtxLicense;
  const command = `${request.command ?? 'trtforge toolchain install tensorrt-rtx'} --accept-license`;
  return new TrtforgeError(
    'TF_LICENSE_NOT_ACCEPTED',
    `tensorrt-rtx ${release.version} is software of ${owner} under the ${name}, which has not been accepted.`,
    {
      remedy: `Read the licence at ${url}, or as LICENSE.txt in the wheel ${release.packageName} ${release.version}; then run: ${command}`,
      details: { owner, license: name, url, command },
    },
  );
}

/** With --wheel the file states which version it is, unless --version states otherwise and then they must agree. */
function releaseOfWheel(path: string, version: string | undefined, processor: Processor): Release {
  const source = openFile(path);
  try {
    const wheel = openWheel(source);
    const release = releaseOf(version ?? wheel.version);
    checkIdentity(wheel, release, processor);
    return release;
  } finally {
    source.close();
  }
}

function checkIdentity(wheel: Wheel, release: Release, processor: Processor): void {
  const { path } = wheel.source;
  // The CUDA 12 and CUDA 13 packages hold the same libraries under the same folder name.
  const isRtx = /^tensorrt-rtx(-cu\d+)?-libs$/.test(wheel.packageName);
  if (!isRtx || wheel.version !== release.version) {
    throw new TrtforgeError(
      'TF_TOOLCHAIN_MISMATCH',
      `${path} is ${wheel.packageName} ${wheel.version}, not ${release.packageName} ${release.version}.`,
      { remedy: `Pass the wheel of ${release.packageName} ${release.version}, or leave --version out.` },
    );
  }
  if (!wheel.tags.some((tag) => /linux[^.]*$/.test(tag) && tag.endsWith(`_${processor}`))) {
    throw new TrtforgeError(
      'TF_TOOLCHAIN_MISMATCH',
      `${path} is built for ${wheel.tags.join(', ') || 'no platform it names'}, not for Linux on ${processor}.`,
      { remedy: `Pass the wheel whose name ends in ${wheelTag(processor)}.whl.` },
    );
  }
}

function makeWorkspace(parent: string, release: Release): string {
  try {
    makeFolder(parent);
    removeAbandoned(parent);
    const name = `.${release.product}-${release.version}.${process.pid}.${randomBytes(4).toString('hex')}`;
    const folder = join(parent, name + UNPUBLISHED_SUFFIX);
    mkdirSync(folder);
    return folder;
  } catch (cause) {
    throw writeFailed(parent, cause);
  }
}

/** Removes the remains of a killed installation: its workspace names its process, and that process is gone. */
function removeAbandoned(parent: string): void {
  for (const name of readdirSync(parent)) {
    const processId = /\.(\d+)(?:\.[0-9a-f]+)?\.unpublished$/.exec(name)?.[1];
    if (processId !== undefined && !isRunning(Number(processId))) {
      rmSync(join(parent, name), { recursive: true, force: true });
    }
  }
}

function isRunning(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) === 'EPERM';
  }
}

async function obtainWheel(
  request: InstallRequest,
  { release, processor, pinned }: PlannedInstallation,
  workspace: string,
  { wheels, ...work }: InstallEnvironment,
): Promise<string> {
  if (request.wheel !== undefined) return request.wheel;
  const folder = join(workspace, 'download');
  mkdirSync(folder);
  const { packageName, version } = release;
  const detail = `${packageName} ${version}`;
  const wheel = { packageName, version, folder, processor, bytes: pinned?.bytes };
  return inPhase('download', work.emit, () => wheels({ ...work, ...wheel }), detail);
}

async function unpackChecked(
  wheelPath: string,
  unpacked: string,
  planned: PlannedInstallation,
  { emit, signal, now }: InstallEnvironment,
): Promise<ToolchainManifest> {
  const { release, processor } = planned;
  const source = openFile(wheelPath);
  try {
    const wheel = openWheel(source);
    checkIdentity(wheel, release, processor);
    const digest = await inPhase('check', emit, async () =>
      checkDigest(wheel, sha256OfRange(source), planned),
    );
    await inPhase('unpack', emit, () => unpackWheel(wheel, unpacked, emit, signal));
    const files = wheel.members.map(({ entry }) => ({ path: entry.name, bytes: entry.size }));
    const license = files.find((file) => /^[^/]+\.dist-info\/(.*\/)?LICENSE[^/]*$/.test(file.path));
    const manifest: ToolchainManifest = {
      schema: 'trtforge.toolchain/1',
      product: release.product,
      version: release.version,
      wheel: {
        file: basename(wheelPath),
        sha256: digest.sha256,
        bytes: source.size,
        checkedBy: digest.checkedBy,
      },
      license: license?.path ?? null,
      files,
      installedAt: now().toISOString(),
    };
    publishFile(join(unpacked, MANIFEST_NAME), `${JSON.stringify(manifest, undefined, 2)}\n`);
    return manifest;
  } finally {
    source.close();
  }
}

/** The pinned digest is of one package; another package of the same version is checked by its RECORD, like an unknown version. */
function checkDigest(
  wheel: Wheel,
  digest: string,
  { release, processor, pinned }: PlannedInstallation,
): { readonly sha256: string; readonly checkedBy: 'pinned' | 'record' } {
  if (pinned === null || wheel.packageName !== release.packageName) {
    return { sha256: digest, checkedBy: 'record' };
  }
  if (digest === pinned.sha256) return { sha256: digest, checkedBy: 'pinned' };
  throw new TrtforgeError(
    'TF_TOOLCHAIN_MISMATCH',
    `${wheel.source.path} has the SHA-256 ${digest}; the wheel of ${release.packageName} ${release.version} for Linux on ${processor} has ${pinned.sha256}.`,
  );
}

function publishFolder(unpacked: string, folder: string, manifest: ToolchainManifest): InstalledToolchain {
  try {
    // A folder without a valid manifest is what is left of a damaged installation.
    if (existsSync(folder) && readManifest(folder) === undefined) removeToolchain(folder);
    renameSync(unpacked, folder);
    syncFolder(join(folder, '..'));
    return { folder, manifest, isNew: true };
  } catch (cause) {
    const present = readManifest(folder);
    if (present !== undefined) return { folder, manifest: present, isNew: false };
    throw cause instanceof TrtforgeError ? cause : writeFailed(folder, cause);
  }
}

/** Removes an installed toolchain: renamed first, so that nobody finds half of it. Throws TF_WRITE_FAILED. */
export function removeToolchain(folder: string): void {
  const doomed = `${folder}.${process.pid}${UNPUBLISHED_SUFFIX}`;
  try {
    renameSync(folder, doomed);
    rmSync(doomed, { recursive: true, force: true });
  } catch (cause) {
    throw writeFailed(folder, cause);
  }
}

function parseFullVersion(written: string): string {
  if (isVersion(written) && written.split('.').length === 4) return written;
  throw new TrtforgeError('TF_USAGE', `"${written}" is not a version.`, {
    remedy: `Write all four parts, as ${releaseOf(undefined).version}.`,
  });
}
