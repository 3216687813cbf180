/** Errors for records that do not match their schema: which record, and what each field should be. Never a value. */
import * as z from 'zod'
import { checkId } from './ids.js'

/** A field that does not match its schema. */
export interface FieldFault {
  /** Names and places from the record down, joined by dots; empty for the record itself. */
  path: string
  /** The expected type, bound, format or enum values. */
  expected: string
}

/** Identifies a record and its invalid fields. */
export interface RecordFault {
  /** The index of the record in its page, from 0; absent without a page. */
  index?: number
  /** Its own id, or `null` where that cannot be one. */
  id: string | null
  /** At most 100. */
  fields: readonly FieldFault[]
}

const FIELDS_MAX = 100
const FIELDS_NAMED = 10

const NAME = /^[A-Za-z0-9_]{1,64}$/

function expectedOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.expected
    case 'invalid_value':
      return issue.values.length === 1 ? JSON.stringify(issue.values[0]) : `one of ${issue.values.join(', ')}`
    case 'too_small':
      return `${issue.origin}, ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`
    case 'too_big':
      return `${issue.origin}, ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`
    case 'invalid_format':
      return issue.format === 'datetime' ? 'ISO 8601 in UTC with milliseconds' : (issue.pattern ?? issue.format)
    case 'custom':
      return issue.message
    default:
      return issue.code
  }
}

/** Returns the invalid fields of a record. Names that may contain user text are left out of the path. */
export const faultsOf = ({ issues }: z.ZodError): FieldFault[] =>
  issues.slice(0, FIELDS_MAX).map((issue) => ({
    path: issue.path.map((part) => (NAME.test(String(part)) ? String(part) : '…')).join('.'),
    expected: expectedOf(issue),
  }))

/** `faults` in one line. */
export function textOfFaults(faults: readonly FieldFault[]): string {
  const named = faults.slice(0, FIELDS_NAMED).map(({ path, expected }) => `${path || 'record'}: expected ${expected}`)
  return [...named, ...(faults.length > FIELDS_NAMED ? [`and ${faults.length - FIELDS_NAMED} more`] : [])].join('; ')
}

/** A record was skipped because it does not match its schema. */
export class BadRecord extends Error {
  override readonly name: string = 'BadRecord'
  /** Absent where no single record is meant. */
  readonly fault: RecordFault | undefined

  constructor(message: string, fault?: RecordFault, options?: ErrorOptions) {
    super(message, options)
    this.fault = fault
  }
}

/** The id of a record: the first field of its schema, or the last of three ids. */
function idIn(schema: z.ZodType, record: unknown): string | null {
  const names = schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
  const name = names.includes('command_id') ? 'command_id' : names[0]
  const id = name !== undefined && record !== null && typeof record === 'object' ? Reflect.get(record, name) : null
  return typeof id === 'string' && checkId(id) === undefined ? id : null
}

/** What came of reading the record at `index` of a list failed with `error`. */
export function toBadRecord(schema: z.ZodType, record: unknown, index: number, error: unknown): BadRecord {
  const fields = error instanceof z.ZodError ? faultsOf(error) : [{ path: '', expected: 'a value that JSON can carry' }]
  let id: string | null = null
  try {
    id = idIn(schema, record)
  } catch {
    // A throwing getter: the record has no usable id.
  }
  const which = `item ${index}${id === null ? '' : ` (${id})`}`
  return new BadRecord(`${which} was skipped: ${textOfFaults(fields)}`, { index, id, fields }, { cause: error })
}

/** Validates a record. Returns the parsed data, or the error. */
export function readRecord<T>(schema: z.ZodType<T>, record: unknown, index: number): { data: T } | BadRecord {
  try {
    const read = schema.safeParse(record)
    return read.success ? { data: read.data } : toBadRecord(schema, record, index, read.error)
  } catch (error) {
    return toBadRecord(schema, record, index, error)
  }
}

/** The member of `record`; `undefined` for a getter that throws, which the schema of the record then reports. */
function memberOf(record: object, name: string): unknown {
  try {
    return Reflect.get(record, name)
  } catch {
    return undefined
  }
}

/**
 * Checks that `record` has the ids that it was requested by. An id that it does not have is not compared.
 *
 * @throws BadRecord for another record than requested; the message names the field, and no value.
 */
export function requireRequested(record: unknown, requested: Readonly<Record<string, unknown>>): void {
  if (record === null || typeof record !== 'object') return
  for (const [name, id] of Object.entries(requested)) {
    const found = memberOf(record, name)
    if (typeof id === 'string' && typeof found === 'string' && found !== id)
      throw new BadRecord(`the inspector returned a record with another ${name} than requested`)
  }
}
