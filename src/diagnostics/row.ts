/** The rows of this router: what `http/route.ts` answers, over the set of inspectors. */
import type * as z from 'zod'
import type { Capability, Inspectors } from '../contract/inspectors.js'
import type { Row, TypedRow } from '../http/route.js'

/** The inspectors as a row sees them: the pipeline has made sure that the one it `needs` is there. */
export type Present = { [Name in keyof Inspectors]-?: NonNullable<Inspectors[Name]> }

/** A row of the diagnostics router. */
export interface DiagnosticsRow extends Row<Present> {
  needs: readonly Capability[]
}

/** Defines a row; `ask` is checked against `path`, `query` and `response`. */
export function diagnosticsRow<Path extends string, Query extends z.ZodObject, Response extends z.ZodType>(
  definition: TypedRow<Present, Path, Query, Response> & { needs: readonly Capability[] },
): DiagnosticsRow {
  return definition as unknown as DiagnosticsRow
}
