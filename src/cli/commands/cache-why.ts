import { shortIdentity } from '../../engines/identity/identity.js';
import { missLines } from '../../report/sentences.js';
import { defineCommand } from '../command.js';
import { buildOptions, buildRequest, storeOptions, withProfileFrom } from '../options/build.js';
import { decidedBuild } from '../options/dry-run.js';

/** In a file of its own: the options of a build load 250 modules, and the other commands of a store are to answer at once. */
export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'an ONNX model; options as for build' }],
  examples: ['trtforge cache why resnet50.onnx --precision fp16 --batch 1/8/32 --target tensorrt-rtx:sm_89'],
  options: { ...buildOptions, ...storeOptions },
  schema: async () => (await import('../../engines/store/result.js')).cacheWhySchema,
  run: async ([model = ''], options, context) => {
    const { request } = await withProfileFrom(buildRequest(model, options), options, context);
    return (await decidedBuild(request, context)).why;
  },
  render: (result, { line, colors }) => {
    line(`${colors.bold(result.name)}  ${colors.dim(shortIdentity(result.identity))}`);
    if (result.engine !== null) line(`${colors.green(`${result.from}, ${result.rule}`)}  ${result.engine}`);
    if (result.refits !== null) {
      const { engine, isCompared } = result.refits;
      line(
        `would be refitted  ${engine}${isCompared ? '' : colors.dim(', if its graph is that of the converted model')}`,
      );
    }
    for (const miss of result.why) for (const each of missLines(miss)) line(each);
    for (const { name, serves, rule, reason } of result.others)
      line(
        `  ${serves ? 'can be reused' : 'cannot be reused'}  ${name}  ${colors.dim(`${rule}: ${reason}`)}`,
      );
  },
});
