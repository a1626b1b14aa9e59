import { closeSync, existsSync, openSync, readdirSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { removeIfThere } from '../../base/files/files.js';
import { makeFolder } from '../../base/files/folders.js';
import type { WorkEvent } from '../../events.js';
import { severityLetters } from '../../tensorrt/trtexec/log/lines.js';

/**
 * The log of one component's build, begun with its first line: every line of the library in trtexec's form (`[11/21/2026-06:00:00] [I] text`), so that
 * whatever reads trtexec's logs reads these. Lines are written as they come: after a kill the last ones are what one looks for. A log that cannot be
 * written does not end the build.
 */
export class ComponentLog {
  readonly path: string;
  #descriptor: number | undefined;
  #stopped = false;

  constructor(path: string) {
    this.path = path;
  }

  /** Writes what a library or trtforge reports; other events are not for the log. */
  take(event: WorkEvent): void {
    if (event.type !== 'log') return;
    for (const text of event.message.split('\n'))
      this.line(`[${stamp(new Date())}] [${severityLetters[event.severity]}] ${text}`);
  }

  line(text: string): void {
    if (this.#stopped) return;
    try {
      if (this.#descriptor === undefined) {
        makeFolder(dirname(this.path));
        this.#descriptor = openSync(this.path, 'w');
      }
      writeSync(this.#descriptor, `${text}\n`);
    } catch {
      this.#stopped = true;
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  /** The path, where there is a log: this run's, or one that an earlier run left. */
  get there(): string | null {
    return existsSync(this.path) ? this.path : null;
  }
}

/** trtexec's `MM/DD/YYYY-hh:mm:ss`, local time. */
function stamp(at: Date): string {
  const two = (part: number) => String(part).padStart(2, '0');
  return `${two(at.getMonth() + 1)}/${two(at.getDate())}/${at.getFullYear()}-${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Moves the log that trtexec's builder left alone in `folder` to its name; gives the command line that trtexec echoes in it. */
export function takeTrtexecLog(folder: string, path: string): readonly string[] | undefined {
  const [name] = existsSync(folder) ? readdirSync(folder) : [];
  if (name === undefined) return undefined;
  renameSync(join(folder, name), path);
  removeIfThere(folder);
  const [, command] =
    /^&&&& RUNNING TensorRT\.trtexec[^#\n]*# (.*)$/m.exec(readFileSync(path, 'latin1')) ?? [];
  return command?.trim().split(/\s+/);
}
