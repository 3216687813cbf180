/** What an answer must be like before it is believed: small checks, for the ends that carry no schema library. */

export type Check<T> = (value: unknown) => value is T

export const isText: Check<string> = (value) => typeof value === 'string'
export const isFlag: Check<boolean> = (value) => typeof value === 'boolean'
export const isNumber: Check<number> = (value) => typeof value === 'number'
export const isObject: Check<Record<string, unknown>> = (value): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

export const isOneOf =
  <const T>(...values: T[]): Check<T> =>
  (value): value is T =>
    values.some((each) => each === value)

/** A word of a list that a newer relay may have made longer: refused, an answer would be lost for the sake of its reason. */
export const isWord = <T extends string>(value: unknown): value is T => isText(value)

export const isListOf =
  <T>(is: Check<T>): Check<T[]> =>
  (value): value is T[] =>
    Array.isArray(value) && value.every((each) => is(each))

export const nullable =
  <T>(is: Check<T>): Check<T | null> =>
  (value): value is T | null =>
    value === null || is(value)

/** A record with all of `fields`, which the compiler holds to be those of `T`; what else it has is a newer relay's affair. */
export const isRecordOf =
  <T>(fields: { [Name in keyof Required<T>]: Check<T[Name]> }): Check<T> =>
  (value): value is T =>
    isObject(value) && Object.entries<Check<unknown>>(fields).every(([name, is]) => is(value[name]))
