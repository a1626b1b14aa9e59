/**
 * The messages of onnx.proto as a decoder needs them, one field a word: `name:type=number`, `*` for repeated, `oneof/name` inside a oneof, `enumN` for an
 * enumeration from 0 to N. A test holds this table against the generated code (onnx_pb.ts), which `writeModel` and everyone who changes messages uses.
 */
const definitions = {
  ModelProto:
    'irVersion:int64=1 producerName:string=2 producerVersion:string=3 domain:string=4 modelVersion:int64=5 docString:string=6 graph:GraphProto=7 ' +
    'opsetImport:OperatorSetIdProto*=8 metadataProps:StringStringEntryProto*=14 trainingInfo:TrainingInfoProto*=20 functions:FunctionProto*=25',
  GraphProto:
    'node:NodeProto*=1 name:string=2 initializer:TensorProto*=5 docString:string=10 input:ValueInfoProto*=11 output:ValueInfoProto*=12 ' +
    'valueInfo:ValueInfoProto*=13 quantizationAnnotation:TensorAnnotation*=14 sparseInitializer:SparseTensorProto*=15 metadataProps:StringStringEntryProto*=16',
  NodeProto:
    'input:string*=1 output:string*=2 name:string=3 opType:string=4 attribute:AttributeProto*=5 docString:string=6 domain:string=7 overload:string=8 ' +
    'metadataProps:StringStringEntryProto*=9',
  AttributeProto:
    'name:string=1 f:float=2 i:int64=3 s:bytes=4 t:TensorProto=5 g:GraphProto=6 floats:float*=7 ints:int64*=8 strings:bytes*=9 tensors:TensorProto*=10 ' +
    'graphs:GraphProto*=11 docString:string=13 tp:TypeProto=14 typeProtos:TypeProto*=15 type:enum14=20 refAttrName:string=21 ' +
    'sparseTensor:SparseTensorProto=22 sparseTensors:SparseTensorProto*=23',
  ValueInfoProto: 'name:string=1 type:TypeProto=2 docString:string=3 metadataProps:StringStringEntryProto*=4',
  TrainingInfoProto:
    'initialization:GraphProto=1 algorithm:GraphProto=2 initializationBinding:StringStringEntryProto*=3 updateBinding:StringStringEntryProto*=4',
  StringStringEntryProto: 'key:string=1 value:string=2',
  TensorAnnotation: 'tensorName:string=1 quantParameterTensorNames:StringStringEntryProto*=2',
  TensorProto:
    'dims:int64*=1 dataType:int32=2 segment:TensorProto.Segment=3 floatData:float*=4 int32Data:int32*=5 stringData:bytes*=6 int64Data:int64*=7 name:string=8 ' +
    'rawData:bytes=9 doubleData:double*=10 uint64Data:uint64*=11 docString:string=12 externalData:StringStringEntryProto*=13 dataLocation:enum1=14 ' +
    'metadataProps:StringStringEntryProto*=16',
  'TensorProto.Segment': 'begin:int64=1 end:int64=2',
  SparseTensorProto: 'values:TensorProto=1 indices:TensorProto=2 dims:int64*=3',
  TensorShapeProto: 'dim:TensorShapeProto.Dimension*=1',
  'TensorShapeProto.Dimension': 'value/dimValue:int64=1 value/dimParam:string=2 denotation:string=3',
  TypeProto:
    'value/tensorType:TypeProto.Tensor=1 value/sequenceType:TypeProto.Sequence=4 value/mapType:TypeProto.Map=5 denotation:string=6 ' +
    'value/sparseTensorType:TypeProto.SparseTensor=8 value/optionalType:TypeProto.Optional=9',
  'TypeProto.Tensor': 'elemType:int32=1 shape:TensorShapeProto=2',
  'TypeProto.Sequence': 'elemType:TypeProto=1',
  'TypeProto.Map': 'keyType:int32=1 valueType:TypeProto=2',
  'TypeProto.Optional': 'elemType:TypeProto=1',
  'TypeProto.SparseTensor': 'elemType:int32=1 shape:TensorShapeProto=2',
  OperatorSetIdProto: 'domain:string=1 version:int64=2',
  FunctionProto:
    'name:string=1 input:string*=4 output:string*=5 attribute:string*=6 node:NodeProto*=7 docString:string=8 opsetImport:OperatorSetIdProto*=9 ' +
    'domain:string=10 attributeProto:AttributeProto*=11 valueInfo:ValueInfoProto*=12 overload:string=13 metadataProps:StringStringEntryProto*=14',
};

type ScalarKind = 'string' | 'bytes' | 'int32' | 'int64' | 'uint64' | 'float' | 'double' | 'enum';

export interface FieldType {
  readonly name: string;
  readonly number: number;
  readonly kind: ScalarKind | 'message';
  readonly repeated: boolean;
  /** The oneof it belongs to. */
  readonly oneof: string | undefined;
  /** The type of a message field. */
  readonly message: MessageType | undefined;
  /** The largest number of an enumeration. */
  readonly largest: number;
}

export interface MessageType {
  /** `onnx.TensorProto.Segment` */
  readonly typeName: string;
  /** By field number. */
  readonly fields: readonly (FieldType | undefined)[];
  /** Holds the values of fields that are not set. */
  readonly prototype: object;
  readonly lists: readonly string[];
  readonly oneofs: readonly string[];
}

const zeros: Readonly<Record<ScalarKind, unknown>> = {
  string: '',
  bytes: new Uint8Array(0),
  int32: 0,
  int64: 0n,
  uint64: 0n,
  float: 0,
  double: 0,
  enum: 0,
};

/** Every message type of ONNX by its name without `onnx.`. */
export const messageTypes: ReadonlyMap<string, MessageType> = resolve();

function resolve(): Map<string, MessageType> {
  const types = new Map<string, MessageType & { fields: (FieldType | undefined)[] }>();
  for (const name of Object.keys(definitions)) {
    types.set(name, { typeName: `onnx.${name}`, fields: [], prototype: {}, lists: [], oneofs: [] });
  }
  for (const [name, definition] of Object.entries(definitions)) {
    const type = types.get(name)!;
    const fields = definition.split(' ').map((word) => parseField(word, types));
    const prototype: Record<string, unknown> = {};
    for (const field of fields) {
      type.fields[field.number] = field;
      if (!field.repeated && field.oneof === undefined && field.kind !== 'message')
        prototype[field.name] = zeros[field.kind];
    }
    Object.assign(type, {
      prototype,
      lists: fields.flatMap((field) => (field.repeated ? [field.name] : [])),
      oneofs: [...new Set(fields.flatMap(({ oneof }) => oneof ?? []))],
    });
  }
  return types;
}

function parseField(word: string, types: ReadonlyMap<string, MessageType>): FieldType {
  const [, oneof, name = '', type = '', star, number] = /^(?:(\w+)\/)?(\w+):([\w.]+)(\*)?=(\d+)$/.exec(word)!;
  const message = types.get(type);
  const enumeration = /^enum(\d+)$/.exec(type);
  return {
    name,
    number: Number(number),
    kind: message !== undefined ? 'message' : enumeration !== null ? 'enum' : (type as ScalarKind),
    repeated: star !== undefined,
    oneof,
    message,
    largest: Number(enumeration?.[1] ?? 0),
  };
}
