import { isAbsolute, join, relative } from 'node:path';
import { TrtforgeError } from '../../errors.js';
import { type FoundToolchain, surveyPlaces } from './find.js';
import { placesIn, type Surroundings } from './places.js';

/**
 * The toolchain of a name; or, where a slash, `.` or `..` names a folder, the one in it: an installation, an archive or an environment, also where trtforge does not look
 * by itself. Throws TF_TOOLCHAIN_NOT_FOUND.
 */
export function toolchainNamed(
  found: readonly FoundToolchain[],
  name: string,
  surroundings: Surroundings,
): FoundToolchain {
  const match = found.find((each) => each.name === name);
  if (match !== undefined) return match;
  if (name.includes('/') || /^\.\.?$/.test(name)) return toolchainIn(found, name, surroundings);
  const names = found.map((each) => each.name);
  throw new TrtforgeError(
    'TF_TOOLCHAIN_NOT_FOUND',
    `There is no toolchain named ${name}; found ${names.length === 0 ? 'is none' : `are ${names.join(', ')}`}.`,
  );
}

function toolchainIn(
  found: readonly FoundToolchain[],
  path: string,
  surroundings: Surroundings,
): FoundToolchain {
  const home = isAbsolute(path) ? join(path) : join(surroundings.workingFolder, path);
  const inside = placesIn(home, 'its folder');
  const known = found.filter(({ folder }) => inside.some((place) => relative(place.folder, folder) === ''));
  const { toolchains, damaged } =
    known.length > 0 ? { toolchains: known, damaged: [] } : surveyPlaces(inside, surroundings);
  const chosen = toolchains.find(({ flavour }) => flavour === 'full') ?? toolchains[0];
  if (chosen !== undefined) return chosen;
  const unusable = damaged.map(({ why }) => ` ${why}`).join('');
  throw new TrtforgeError(
    'TF_TOOLCHAIN_NOT_FOUND',
    `${path} holds no TensorRT that this machine can use, nor does its lib folder.${unusable}`,
    {
      remedy: 'Name the folder that an archive of TensorRT unpacks to, or the one that holds libnvinfer.so.',
    },
  );
}
