/** Asks every operation of a document, as it describes it, through a proxy that answers for each violation in our place. */
import { GIVEN } from '../openapi-host.mjs'

/** Requests with the tag of the one before, until one is answered with 304. */
const TRIES = 5

/** A request for an operation with what it requires, or what keeps it from being asked. */
function requestOf(path, { parameters = [] }) {
  const required = parameters.filter((parameter) => parameter.required)
  const missing = required.filter(({ name }) => GIVEN[name] === undefined)
  if (missing.length > 0) return { missing: missing.map(({ name }) => name) }
  const url = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(GIVEN[name]))
  const query = new URLSearchParams(required.filter((one) => one.in === 'query').map(({ name }) => [name, GIVEN[name]]))
  return { url: query.size > 0 ? `${url}?${query}` : url }
}

/** The requests for each route: one per status that it documents. */
function* variants(operation, url) {
  const names = (operation.parameters ?? []).map(({ name }) => name)
  const more = (query) => `${url}${url.includes('?') ? '&' : '?'}${query}`
  yield { what: 'as it is', url, status: 200 }
  yield { what: 'with a wrong key', url, status: 403, headers: { 'x-admin-key': 'wrong' } }
  yield { what: 'of another deployment', url, status: 412, headers: { 'x-expected-deployment-id': 'elsewhere' } }
  if (names.includes('cursor')) yield { what: 'with a cursor of no list', url: more('cursor=none'), status: 422 }
  if (operation.responses[404]) yield { what: 'of a record that is not there', url: unknownRecord(url), status: 404 }
}

/** The same for a record that does not exist: its id is in the path, or the last of the query. */
const unknownRecord = (url) => url.replace(/(?:[\w%-]+-1)(?=[^=]*$)/, 'no-such-record')

/** @returns how many requests were sent, and what did not fit. */
export async function checkRoutes(document, baseUrl, key) {
  const violations = []
  let asked = 0
  async function ask(url, headers) {
    asked += 1
    const answer = await fetch(`${baseUrl}${url}`, { headers: { 'x-admin-key': key, ...headers } })
    return { answer, text: await answer.text() }
  }
  for (const [path, { get: operation }] of Object.entries(document.paths)) {
    // A stream has no end that a proxy could wait for.
    if (operation.responses[200]?.content?.['text/event-stream']) continue
    const { url: target, missing } = requestOf(path, operation)
    if (missing) {
      violations.push(`GET ${path}: say in tools/openapi-host.mjs what ${missing.join(' and ')} is`)
      continue
    }
    for (const { what, url, status, headers } of variants(operation, target)) {
      const { answer, text } = await ask(url, headers)
      // Instead of a 501 the proxy generates a response of its own, without the router's headers.
      if (answer.headers.get('referrer-policy') === null && !text.includes('stoplight.io/prism'))
        violations.push(
          `GET ${url} ${what}: the host answered 501; add the records of the route to tools/openapi-host.mjs`,
        )
      else if (answer.status !== status || text.includes('stoplight.io/prism'))
        violations.push(`GET ${url} ${what}: ${answer.status} instead of ${status}: ${text.slice(0, 1_000)}`)
      let tag = answer.headers.get('etag')
      if (status !== 200 || tag === null) continue
      // On a busy machine a source may be slow once, which is another answer.
      for (let tries = 1; tag !== null; tries++) {
        const { answer: again, text: more } = await ask(url, { 'if-none-match': tag })
        tag = again.status === 304 ? null : again.headers.get('etag')
        if (again.status === 304 || (again.status === 200 && tag !== null && tries < TRIES)) continue
        violations.push(`GET ${url} that has not changed: ${again.status}: ${more.slice(0, 1_000)}`)
        break
      }
    }
  }
  return { asked, violations }
}
