/** What time alone changes in an answer whose entity tag stays the same. */

/** Fields that say how long something has lasted, in ms. */
export const AGES: readonly string[] = ['age_ms', 'staleness_ms']
/** Members that hold further records of a source. Others may hold data of clients. */
const WITHIN: readonly string[] = ['items', 'evidence']

/** Changes `answer` to what it reads `ms` later if nothing else has changed: ages and `observed_at` grow. */
export function grow(answer: unknown, ms: number): void {
  if (typeof answer !== 'object' || answer === null) return
  const record = answer as Record<string, unknown>
  for (const [name, value] of Object.entries(record)) {
    if (Array.isArray(answer) || WITHIN.includes(name)) grow(value, ms)
    else if (AGES.includes(name) && typeof value === 'number') record[name] = value + ms
    else if (name === 'observed_at' && !Number.isNaN(Date.parse(String(value))))
      record[name] = new Date(Date.parse(String(value)) + ms).toISOString()
  }
}
