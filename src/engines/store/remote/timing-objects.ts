import type { TimingFiles } from '../timing-folder.js';
import { downloadFile } from './download.js';
import type { Objects } from './objects.js';
import { uploadFile } from './upload.js';

/** Timing caches of a bucket. Every method throws TF_REMOTE_*. */
export class TimingObjects implements TimingFiles {
  readonly place: string;
  readonly #prefix: string;

  constructor(
    private readonly objects: Objects,
    prefix: string,
  ) {
    this.place = objects.place;
    this.#prefix = `${prefix}.timing/`;
  }

  async list(scope?: string, signal?: AbortSignal) {
    const found = [];
    const prefix = this.#prefix + (scope === undefined ? '' : `${scope}/`);
    for await (const { key, bytes, modified } of this.objects.list(prefix, signal)) {
      const name = key.slice(this.#prefix.length);
      if (/^[\w.+-]+\/[0-9a-f]{64}\.timing(\.json)?$/.test(name))
        found.push({ name, bytes, modified: modified.getTime() });
    }
    return found;
  }

  async text(name: string, signal?: AbortSignal) {
    return (await this.objects.read(`${this.#prefix}${name}.json`, signal))?.body.toString('utf8');
  }

  async fetch(...[name, facts, path, work]: Parameters<TimingFiles['fetch']>) {
    const there = await this.objects.head(this.#prefix + name, work.signal);
    if (there === undefined) return false;
    await downloadFile(this.objects, there, path, facts, work);
    return true;
  }

  async put(...[name, path, description, work]: Parameters<TimingFiles['put']>) {
    const key = this.#prefix + name;
    await uploadFile(this.objects, path, key, {}, work);
    const options = { contentType: 'application/json' };
    await this.objects.put(`${key}.json`, Buffer.from(description), options, work.signal);
  }

  async remove(name: string, signal?: AbortSignal) {
    await this.objects.remove([`${this.#prefix}${name}.json`, this.#prefix + name], signal);
  }
}
