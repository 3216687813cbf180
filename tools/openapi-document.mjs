/**
 * Prints an OpenAPI document of the built library, for linters and client generators: `node tools/openapi-document.mjs
 * [diagnostics | cooperative-site | control-server]`.
 */
import { openApiDocument } from 'relayscope'
import { controlServerOpenApi } from 'relayscope/control-server'
import { cooperativeSiteOpenApi } from 'relayscope/cooperative-site'

const DOCUMENTS = {
  diagnostics: openApiDocument,
  'cooperative-site': cooperativeSiteOpenApi,
  'control-server': controlServerOpenApi,
}

const [name = 'diagnostics'] = process.argv.slice(2)
if (!Object.hasOwn(DOCUMENTS, name))
  throw new Error(`Unknown document ${name}. Valid names: ${Object.keys(DOCUMENTS).join(', ')}`)
console.log(JSON.stringify(DOCUMENTS[name](), null, 2))
