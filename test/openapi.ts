/** Checks of every OpenAPI document: names, descriptions and examples, each with what to do if one is missing. */
import { expect } from 'vitest'
import { PROBLEMS, Problem, type ProblemCode } from '../src/internal/http/problem.js'

// biome-ignore lint/suspicious/noExplicitAny: a document is read by the assertions, place by place
type Loose = any

interface Operation {
  operationId: string
  summary: string
  parameters?: { name?: string; in?: string; description?: string; $ref?: string }[]
  requestBody?: Loose
  responses: Record<string, Loose>
}

const METHODS = ['get', 'put', 'post', 'delete']

/** Every operation of a document, by `METHOD path`. */
export function operationsOf(document: Loose): [name: string, operation: Operation][] {
  return Object.entries(document.paths as Record<string, Record<string, Operation>>).flatMap(([path, item]) =>
    METHODS.flatMap((method): [string, Operation][] => {
      const operation = item[method]
      return operation ? [[`${method.toUpperCase()} ${path}`, operation]] : []
    }),
  )
}

/** Properties below `schema` without a description. */
function undescribedIn(schema: Loose, place: string): string[] {
  if (schema === null || typeof schema !== 'object') return []
  const own = Object.entries((schema.properties ?? {}) as Record<string, Loose>).flatMap(([name, property]) => [
    ...(property.description ? [] : [`${place}.${name}: give the field a .describe('…') in its zod schema`]),
    ...undescribedIn(property, `${place}.${name}`),
  ])
  const nested = ['items', 'additionalProperties', 'anyOf', 'allOf', 'oneOf'].flatMap((key) =>
    [schema[key]].flat().flatMap((part) => undescribedIn(part, place)),
  )
  return [...own, ...nested]
}

/** What in a document says nothing of itself, each with what to do. */
export function undescribed(document: Loose): string[] {
  const schemas = Object.entries(document.components.schemas as Record<string, Loose>).flatMap(([name, schema]) => [
    ...(schema.description ? [] : [`${name}: give the schema a .describe('…')`]),
    ...undescribedIn(schema, name),
  ])
  const parameters = operationsOf(document).flatMap(([name, { parameters = [] }]) =>
    parameters
      .filter(({ $ref, description }) => !$ref && !description)
      .map((parameter) =>
        parameter.in === 'path'
          ? `${name} {${parameter.name}}: give the id a line in NAMES of src/internal/contract/ids.ts`
          : `${name} ?${parameter.name}: give the field of the query a .describe('…')`,
      ),
  )
  return [...schemas, ...parameters]
}

/** What a generator could not name a function or a type by, each with what to do. */
export function unnamed(document: Loose): string[] {
  const operations = operationsOf(document)
  const ids = operations.map(([, { operationId }]) => operationId)
  return [
    ...operations.flatMap(([name, { operationId }]) => [
      ...(/^[a-z]+[A-Z][A-Za-z]*$/.test(operationId)
        ? []
        : [`${name}: operationId must be a verb and what it answers, like listConnections, not ${operationId}`]),
      ...(ids.filter((id) => id === operationId).length > 1 ? [`${name}: another route is ${operationId} too`] : []),
    ]),
    ...Object.keys(document.components.schemas)
      .filter((name) => !/^[A-Z][A-Za-z]*$/.test(name))
      .map((name) => `${name}: give the answer a name in VIEWS of src/internal/diagnostics/openapi.ts`),
  ]
}

/** Holds the problems of a document: an enum of codes, each under its own status, each with a body of its own. */
export function expectProblems(document: Loose): void {
  expect(document.components.schemas.ProblemCode.enum).toEqual(Object.keys(PROBLEMS))
  expect(document.components.schemas.Problem.properties.code.$ref).toBe('#/components/schemas/ProblemCode')
  for (const [code, example] of Object.entries(document.components.examples as Record<string, Loose>))
    expect(Problem.strict().parse(example.value)).toMatchObject({ code, status: PROBLEMS[code as ProblemCode][0] })
  for (const [name, { responses }] of operationsOf(document))
    for (const [status, { content }] of Object.entries(responses)) {
      const examples = content?.['application/problem+json']?.examples
      if (Number(status) < 400) continue
      const codes = Object.keys(examples) as ProblemCode[]
      expect([name, codes.map((code) => PROBLEMS[code][0])]).toEqual([name, codes.map(() => Number(status))])
      expect(codes.map((code) => document.components.examples[code])).not.toContain(undefined)
    }
}

/** References that lead nowhere within the document. */
export function dangling(document: Loose): string[] {
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map((match) => match[1] as string)
  return refs.filter(
    (path) => path.split('/').reduce((node: Loose, key) => node?.[key], document as Loose) === undefined,
  )
}

const isTemplateOf = (template: string, path: string) =>
  new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path)

/** One answer as it came, to be held against the document. `body`: `undefined` where it was not read. */
interface Answered {
  method: string
  /** Below the prefix, without its query. */
  path: string
  status: number
  type: string | null
  body?: Loose
}

/** Holds an answer to what the document says of its route: status, media type, and of a problem its code. */
export function expectDescribed(document: Loose, { method, path, status, type, body }: Answered): void {
  const template = Object.keys(document.paths).find((one) => isTemplateOf(one, path))
  const operation = template && document.paths[template][method.toLowerCase()]
  // A request without a documented route or status has no schema.
  if (!operation) return
  const asked = `${method} ${template}`
  const response = operation.responses[status]
  expect(response, `${asked} answers ${status} ${JSON.stringify(body)}, which its operation does not say`).toBeDefined()
  const media = type?.split(';')[0]
  expect([asked, status, Object.keys(response.content ?? {})]).toEqual([asked, status, media ? [media] : []])
  if (status >= 400 && body)
    expect([asked, Object.keys(response.content[media as string].examples)]).toEqual([
      asked,
      expect.arrayContaining([body.code]),
    ])
}

/** Every code that a document has under any of its operations. */
export function codesOf(document: Loose): string[] {
  return Object.keys(document.components.examples)
}
