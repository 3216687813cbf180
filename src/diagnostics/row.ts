/** The rows of this router: what `http/route.ts` answers, over the set of inspectors. */
import type * as z from 'zod'
import type { Capability, Inspectors } from '../contract/inspectors.js'
import { type Row, row } from '../http/route.js'

/** The inspectors as a row sees them: the pipeline has made sure that the one it `needs` is there. */
export type Present = { [Name in keyof Inspectors]-?: NonNullable<Inspectors[Name]> }

/** A row of the diagnostics router. */
export type DiagnosticsRow = Row<Present> & { needs: readonly Capability[] }

/** Defines a row; `ask` is checked against `query` and `response`. */
export function diagnosticsRow<Query extends z.ZodObject, Response extends z.ZodType>(
  definition: Parameters<typeof row<Present, Query, Response>>[0] & { needs: readonly Capability[] },
): DiagnosticsRow {
  return row<Present, Query, Response>(definition) as DiagnosticsRow
}
