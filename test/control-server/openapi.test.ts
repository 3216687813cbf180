/** The control server's document: what it owes its readers. What it answers is held by `wire.ts`. */
import { describe, expect, it } from 'vitest'
import { controlServerOpenApi } from '../../src/control-server/index.js'
import { CONTROL_ROUTES } from '../../src/control-server/routes.js'
import { dangling, expectProblems, operationsOf, undescribed, unnamed } from '../openapi.js'

const document = controlServerOpenApi()
const operations = CONTROL_ROUTES.flatMap(({ path, methods }) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, operation })),
)

describe('the document of the control server', () => {
  it('has every route', () => {
    expect(
      operationsOf(document)
        .map(([name]) => name)
        .sort(),
    ).toEqual(operations.map(({ name }) => name).sort())
  })

  it('names and describes every schema and field', () => {
    expect([...unnamed(document), ...undescribed(document), ...dangling(document)]).toEqual([])
    expectProblems(document)
  })

  it.each(operations)('has valid examples of the request and response of $name', ({ operation: { body, answers } }) => {
    if (body) expect(body.schema.parse(body.example)).toEqual(body.example)
    for (const { schema, example } of Object.values(answers)) if (schema) expect(schema.parse(example)).toEqual(example)
  })
})
