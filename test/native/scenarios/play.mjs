// What engines do over the fake libraries, a process each: node --expose-gc play.mjs <addon wrapper> <addon> <library> <folder of plans> <scenario> [arguments]
// Prints what the scenario found, as JSON.
import { copies } from './copies.mjs';
import { faults } from './faults.mjs';
import { foreign } from './foreign.mjs';
import { gpus } from './gpus.mjs';
import { lifetimes } from './lifetimes.mjs';
import { results } from './results.mjs';
import { given, outcome } from './workbench.mjs';

const scenario = process.argv[6];
const scenarios = { ...results, ...copies, ...lifetimes, ...faults, ...gpus, ...foreign };

/** One scenario by its name, or several as JSON: `[[name, arguments, environment], …]`, whose environment holds while each runs. */
async function play() {
  if (!scenario.startsWith('[')) return await outcome(scenarios[scenario]);
  const found = {};
  for (const [name, args, environment] of JSON.parse(scenario)) {
    given.splice(0, given.length, ...args);
    Object.assign(process.env, environment);
    found[name] = await outcome(scenarios[name]);
    for (const variable of Object.keys(environment)) delete process.env[variable];
  }
  return found;
}

const result = await play();
if (result !== 'done') process.stdout.write(JSON.stringify({ result }));
