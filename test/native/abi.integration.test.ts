import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { differences, ortTable, readOrtHeader } from '../../native/abi/derive-ort.mjs';
import { readHeaders } from '../../native/abi/headers.mjs';
import { ortHeader, readOrtTable, readTables, slotsHeader } from '../../native/abi/slots-header.mjs';
import { abiTable, generationOf, generations, versionsWith } from '../../src/tensorrt/toolchain/abi.js';
import { isAtLeast } from '../../src/tensorrt/toolchain/toolchain.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-abi-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A folder of headers in the manner of TensorRT's, with the declarations a test is about. */
function headers(name: string, version: [number, number, number], source: string): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  const [major, minor, patch] = version;
  writeFileSync(
    join(path, 'NvInferVersion.h'),
    `#define OWN_MAJOR ${major}\n#define NV_TENSORRT_MAJOR OWN_MAJOR //!< follows\n#define NV_TENSORRT_MINOR ${minor}\n#define NV_TENSORRT_PATCH ${patch}\n`,
  );
  writeFileSync(join(path, 'NvInfer.h'), source);
  return path;
}

const root = `class VRoot { public: virtual ~VRoot() noexcept = default; };`;

describe('reading headers', () => {
  test('slots are counted as the Itanium ABI lays them out', () => {
    const path = headers(
      'plain',
      [10, 0, 1],
      `${root}
      // virtual void commentedOut() = 0;
      /* class VBuilder : public VRoot { virtual int old() = 0; }; */
      class VBuilder : public VRoot {
      public:
        virtual bool first(char const* name, Pair<int, int> two) noexcept = 0;
        int notVirtual() const noexcept { return mImpl->first(); }
        TRT_DEPRECATED virtual int32_t second() const noexcept = 0;
        [[nodiscard]] virtual void second(int32_t overloaded) noexcept { if (true) { done(); } }
      protected:
        virtual void third(void (*callback)(int, int), int64_t* out) noexcept = 0;
      };`,
    );
    expect(readHeaders(path).classes.IBuilder?.slots).toEqual([
      { index: 0, name: 'destroy.complete', parameters: 0 },
      { index: 1, name: 'destroy.deleting', parameters: 0 },
      { index: 2, name: 'first', parameters: 2 },
      { index: 3, name: 'second', parameters: 0, type: 'int32()' },
      { index: 4, name: 'second', parameters: 1, type: 'void(int32)' },
      { index: 5, name: 'third', parameters: 2, type: 'void(pointer, int64*)' },
    ]);
  });

  test('types are those that the machine passes: names followed, enumerations as numbers, references as pointers', () => {
    const path = headers(
      'types',
      [10, 0, 1],
      `${root}
      using Dims = Dims64; using Handle = void*; using Flags = uint32_t; using char_t = char; using AsciiChar = char_t;
      enum class Kind : int32_t { kA }; enum class Plain { kA };
      class VBuilder : public VRoot {
      public:
        virtual Dims shape(AsciiChar const* name, Kind kind, Plain plain) const noexcept = 0;
        virtual nvinfer1::IPlain* made(Dims const& dims, std::size_t bytes = 4, bool on = false) noexcept = 0;
        virtual Flags flags(Handle handle, cudaStream_t stream, float share) noexcept = 0;
        virtual Weights weights(int32_t const* values, char const* const* names) noexcept = 0;
        virtual void take(int32_t const* values, char const* const* names) noexcept = 0;
      };`,
    );
    const slots = readHeaders(path).classes.IBuilder?.slots.slice(2);
    expect(slots?.map(({ type }) => type)).toEqual([
      'dims64(text, int32, int32)',
      'pointer(dims64*, uint64, bool)',
      'uint32(pointer, pointer, float)',
      undefined,
      'void(int32*, pointer)',
    ]);
  });

  test('an override keeps the place of its base, also a destructor in the middle', () => {
    const path = headers(
      'override',
      [11, 0, 0],
      `class IVersionedInterface { public:
         virtual int getAPILanguage() const noexcept { return 0; }
         virtual InterfaceInfo getInterfaceInfo() const noexcept = 0;
         virtual ~IVersionedInterface() noexcept = default; };
       class ILogger : public IVersionedInterface { public:
         InterfaceInfo getInterfaceInfo() const noexcept override { return {"ILogger", 1, 0}; }
         virtual void log(Severity severity, char const* msg) noexcept = 0;
         ~ILogger() override = default; };`,
    );
    expect(readHeaders(path).classes.ILogger?.slots.map(({ name }) => name)).toEqual([
      'getAPILanguage',
      'getInterfaceInfo',
      'destroy.complete',
      'destroy.deleting',
      'log',
    ]);
  });

  test('numbers of an enumeration: implied, given, deprecated, and by another name', () => {
    const path = headers(
      'enums',
      [10, 16, 0],
      'enum class BuilderFlag : int32_t { kA TRT_DEPRECATED_ENUM = 0, kB, kC = 5, kD TRT_DEPRECATED_ENUM = kC, kE, };',
    );
    expect(readHeaders(path).enums.BuilderFlag).toEqual({ kA: 0, kB: 1, kC: 5, kD: 5, kE: 6 });
  });

  test('a folder without headers is reported', () => {
    expect(() => readHeaders(folder)).toThrow('NvInferVersion.h');
  });
});

describe('deriving a table', () => {
  const script = fileURLToPath(new URL('../../native/abi/derive.mjs', import.meta.url));
  const derive = (...args: string[]) => spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });

  test('headers that are not of the generation are rejected', () => {
    const path = headers('foreign', [9, 3, 0], root);
    expect(derive('--generation', '10', path)).toMatchObject({ status: 2 });
  });

  test('headers that disagree with the committed table end with the place of each difference', () => {
    const path = headers(
      'other',
      [10, 6, 0],
      `${root} class VHostMemory : public VRoot { public:
         virtual std::size_t size() const noexcept = 0; virtual void* data() const noexcept = 0; };`,
    );
    const { status, stderr } = derive('--generation', '10', path);
    expect(status).toBe(1);
    expect(stderr).toContain('IHostMemory slot 2 is size: uint64(), committed as data: pointer().');
    expect(stderr).toContain('IHostMemory slot 4 (type) is committed as of 10.0.1 but 10.6.0 lacks it.');
  });

  test('without arguments it states how it is used', () => {
    const { status, stderr } = derive();
    expect(status).toBe(2);
    expect(stderr).toContain('Usage:');
  });
});

describe.each(readTables().map((table) => [table.generation, table] as const))('table %s', (_, table) => {
  test('every class counts its slots from 0 without a gap', () => {
    for (const { slots } of Object.values(table.classes))
      expect(slots.map(({ index }) => index)).toEqual(slots.map((_slot, place) => place));
  });

  test('what came later lies inside the versions the table was derived from', () => {
    const features = [
      ...Object.values(table.classes).flatMap(({ slots }) => slots),
      ...Object.values(table.enums).flatMap((numbers) => Object.values(numbers)),
    ];
    for (const { since } of features)
      if (since !== undefined) {
        expect(isAtLeast(since, table.from)).toBe(true);
        expect(isAtLeast(table.to, since)).toBe(true);
      }
  });

  test('public objects with a worker behind them delete in their second slot', () => {
    for (const { impl, slots } of Object.values(table.classes))
      if (impl !== undefined) expect(slots[1]?.name).toBe('destroy.deleting');
  });
});

describe('what the tables state', () => {
  test.each([
    ['8', 15],
    ['10', 13],
    ['11', 12],
  ] as const)(
    'generation %s: VERSION_COMPATIBLE is flag %i, as it moved between majors',
    (generation, number) => {
      expect(abiTable(generation).enums.BuilderFlag?.kVERSION_COMPATIBLE?.value).toBe(number);
    },
  );

  test('10.8.0 is the exception of its generation: a function stood in the middle of a table', () => {
    const slots = readTables()[1]?.classes.INetworkDefinition?.slots.filter(
      ({ except }) => except !== undefined,
    );
    expect(slots?.map(({ index }) => index)).toEqual([
      63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76,
    ]);
    expect(new Set(slots?.flatMap(({ except }) => except))).toEqual(new Set(['10.8.0']));
  });

  test('the C++ header holds each function with its number of parameters, and −1 where it is missing', () => {
    const header = slotsHeader(readTables());
    expect(header).toMatch(
      /^inline constexpr Method<void\*\(const void\*, std::size_t, const void\*\), Absent, Absent, Absent> IRuntime_deserializeCudaEngine_3\{\{\d+\}\};$/m,
    );
    expect(header).toContain(
      '{"IBuilderConfig::setTilingOptimizationLevel", {{-1, 0, 0}, {62, 100800, 0}, {51, 110000, 0}, {51, 10701, 0}}}',
    );
  });
});

describe('a call through a table', () => {
  /** Whether the body of a function with an execution context, a configuration and a library compiles. */
  const compiles = (body: string): boolean => {
    writeFileSync(join(folder, 'slots.h'), slotsHeader(readTables()));
    const source = `#include "library.hpp"
      using namespace trtforge;
      [[maybe_unused]] void calls(const InferenceLibrary& library, const Facade& context, const Facade& config, void* memory) { ${body} }`;
    const include = fileURLToPath(new URL('../../native/src', import.meta.url));
    const args = ['-std=c++17', '-fsyntax-only', '-xc++', `-I${folder}`, `-I${include}`, '-'];
    const { status, stderr } = spawnSync(process.env.CXX ?? 'g++', args, { input: source, encoding: 'utf8' });
    if (status !== 0 && !/not of the type|differently|no match|arguments|cannot convert/.test(stderr))
      throw new Error(stderr);
    return status === 0;
  };
  const limit = 'Slot::IBuilderConfig_setMemoryPoolLimit_2';
  const shape = 'Slot::IExecutionContext_setInputShape_2';

  test.each([
    ['as it is declared', `config.call(${limit}, 0, std::size_t{1});`, true],
    ['with a number that is too narrow', `config.call(${limit}, 0, 1);`, false],
    ['with a number that is too wide', `config.call(${limit}, std::int64_t{0}, std::size_t{1});`, false],
    ['with too few arguments', `config.call(${limit}, 0);`, false],
    ['with a pointer for a number', `config.call(${limit}, 0, memory);`, false],
    [
      'of a function that generations declare differently',
      `Dims64 dims; context.call(${shape}, "x", &dims);`,
      false,
    ],
    [
      'of one generation, as that declares it',
      `Dims32 dims; context.call(declaredIn<Generation::k8>(${shape}), "x", &dims);`,
      true,
    ],
    [
      'of one generation, with the shape of another',
      `Dims32 dims; context.call(declaredIn<Generation::k10>(${shape}), "x", &dims);`,
      false,
    ],
    [
      'whose result is taken for another type',
      'std::int32_t* values = context.call(Slot::ICudaEngine_getProfileTensorValuesV2_3, "x", 0, 0); (void)values;',
      false,
    ],
  ])(
    '%s compiles only where the types are the declared ones',
    (_case, body, expected) => {
      expect(compiles(body)).toBe(expected);
    },
    60_000,
  );
});

describe('versions', () => {
  test.each([
    ['tensorrt', '8.6.1.6', '8'],
    ['tensorrt', '8.5.3', null],
    ['tensorrt', '9.3.0', null],
    ['tensorrt', '10.16.1.11', '10'],
    ['tensorrt', '11.4.0.106', '11'],
    ['tensorrt', '12.0.0', null],
    ['tensorrt-rtx', '1.7.1.116', 'rtx1'],
    ['tensorrt-rtx', '1.4.0.76', null],
  ] as const)('%s %s follows table %s', (product, version, generation) => {
    expect(generationOf({ product, version })).toBe(generation);
  });

  test.each([
    ['10.10.0', '10.9.0', true],
    ['10.8.0', '10.10', false],
    ['10.8', '10.8.0', true],
    ['11.0.0.1', '11.0.0', true],
  ])('%s at least %s: %s', (version, since, answer) => {
    expect(isAtLeast(version, since)).toBe(answer);
  });

  test('a feature is stated by product and version', () => {
    expect(versionsWith({ class: 'IBuilderConfig', name: 'setTilingOptimizationLevel' })).toBe(
      'TensorRT 10.8.0 to 10.x, TensorRT 11.x, TensorRT-RTX 1.7 to 1.x',
    );
    expect(versionsWith({ enum: 'BuilderFlag', name: 'kFP16' })).toBe('TensorRT 8.6, TensorRT 10.x');
    expect(versionsWith({ enum: 'BuilderFlag', name: 'kNONSENSE' })).toBe('no version of TensorRT');
  });

  test('the generations are those of the C++ side', () => {
    expect(readTables().map(({ generation }) => generation)).toEqual(generations);
  });
});

describe("ONNX Runtime's table", () => {
  const header = (version: number, ...more: string[]) =>
    readOrtHeader(`#define ORT_API_VERSION ${version}
struct OrtApi {
  /** \\brief A status; see also: ORT_API2_STATUS(NotMe) */
  OrtStatus*(ORT_API_CALL* CreateStatus)(OrtErrorCode code, _In_ const char* msg)NO_EXCEPTION ORT_ALL_ARGS_NONNULL;
  const char*(ORT_API_CALL* GetErrorMessage)(_In_ const OrtStatus* status)NO_EXCEPTION;
  ORT_API2_STATUS(GetDimensions, _In_ const OrtTensorTypeAndShapeInfo* info, _Out_ int64_t* values,
                  size_t length);
  ORT_CLASS_RELEASE(Env);
  ${more.join('\n  ')}
#ifdef __cplusplus
  OrtApi(const OrtApi&) = delete;
#endif
};
`);
  const later = 'ORT_API_T(const char*, Later, _In_ OrtEnv* env);';

  test('is read in order, as the machine passes results and parameters', () => {
    expect(header(20).functions).toEqual([
      { name: 'CreateStatus', type: 'pointer(int32, text)' },
      { name: 'GetErrorMessage', type: 'text(pointer)' },
      { name: 'GetDimensions', type: 'pointer(pointer, pointer, uint64)' },
      { name: 'ReleaseEnv', type: 'void(pointer)' },
    ]);
  });

  test('a function has the first version that has it, and another place is a difference', () => {
    const headers = [header(22, later), header(20)];
    const table = ortTable(['Later', 'GetDimensions'], headers);
    expect(table.functions).toEqual({
      GetDimensions: { index: 2, type: 'pointer(pointer, pointer, uint64)' },
      Later: { index: 4, since: 22, type: 'text(pointer)' },
    });
    expect(differences(table, headers)).toEqual([]);
    const moved = header(23, 'ORT_CLASS_RELEASE(Other);', later);
    expect(differences(table, [...headers, moved])).toHaveLength(2);
    expect(() => ortTable(['Nobody'], headers)).toThrow('Nobody');
  });

  test('every function in it has a type that the addon can call', () => {
    const table = readOrtTable();
    expect(Object.keys(table.functions).length).toBeGreaterThan(40);
    expect(ortHeader(table)).not.toMatch(/Absent|undefined/);
  });
});
