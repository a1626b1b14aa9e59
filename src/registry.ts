import { searchesOf } from './cli/command.js';
import { core } from './cli/commands/core.js';
import { bundle } from './products/bundle/product.js';
import { deepstream } from './products/deepstream/product.js';
import { edit } from './products/edit/product.js';
import { evaluation } from './products/evaluation/product.js';
import { explore } from './products/explore/product.js';
import { fleet } from './products/fleet/product.js';
import { streaming } from './products/streaming/product.js';
import { study } from './products/study/product.js';
import { triton } from './products/triton/product.js';

/** The core and every product: the one place that imports products. */
export const products = [
  core,
  edit,
  explore,
  study,
  bundle,
  streaming,
  deepstream,
  evaluation,
  triton,
  fleet,
];

/** What searches after a failure, for the library. */
export const searches = searchesOf(products);
