/** What every route owes its readers and the generators of clients: names, descriptions, and an example of its answer. */
import { describe, expect, it } from 'vitest'
import { openApiDocument } from '../../src/internal/diagnostics/openapi.js'
import { ROUTES } from '../../src/internal/diagnostics/routes.js'
import { expectProblems, operationsOf, undescribed, unnamed } from '../openapi.js'

const document = openApiDocument()

describe('the document', () => {
  it('names every operation and every answer as an identifier', () => {
    expect(unnamed(document)).toEqual([])
  })

  it('describes every schema, every property and every parameter', () => {
    expect(undescribed(document)).toEqual([])
  })

  it('says which problems there are', () => {
    expectProblems(document)
  })

  it.each(ROUTES)('has an example of what $path answers, as its schema has it', ({ path, response, example }) => {
    const answer = response.parse(example)
    // An example is what an inspector returns; the answer has every field.
    expect(answer).toMatchObject(example as object)
    const [, operation] = operationsOf(document).find(([name]) => name === `GET ${path}`) ?? []
    expect(operation?.responses['200'].content['application/json'].example).toEqual(JSON.parse(JSON.stringify(answer)))
  })
})

describe('what is missing is said with what to do', () => {
  const schemas = { Problem: { description: 'x' } }
  const planted = (operation: object, more = {}) => ({
    paths: { '/a/{nope_id}': { get: { operationId: 'getA', responses: {}, ...operation } } },
    components: { schemas: { ...schemas, ...more } },
  })

  it.each([
    [
      'an operation without an identifier',
      planted({ operationId: '/' }),
      /GET \/a\/\{nope_id\}: operationId must be a verb/,
    ],
    [
      'an answer without a name',
      planted({}, { Answer_getA: { description: 'x' } }),
      /Answer_getA: give the answer a name/,
    ],
  ])('%s', (_what, faulty, said) => {
    expect(unnamed(faulty)).toEqual([expect.stringMatching(said)])
  })

  it.each([
    ['a schema', planted({}, { A: {} }), /^A: give the schema/],
    ['a field', planted({}, { A: { description: 'x', properties: { b: {} } } }), /^A\.b: give the field/],
    [
      'a field of a list of what can be null',
      planted({}, { A: { description: 'x', items: { anyOf: [{ properties: { b: {} } }, { type: 'null' }] } } }),
      /^A\.b: give the field/,
    ],
    ['an id in a path', planted({ parameters: [{ name: 'nope_id', in: 'path' }] }), /\{nope_id\}: give the id a line/],
    ['a filter', planted({ parameters: [{ name: 'b', in: 'query' }] }), /\?b: give the field of the query/],
  ])('%s', (_what, faulty, said) => {
    expect(undescribed(faulty)).toEqual([expect.stringMatching(said)])
  })
})
