/** Prints the OpenAPI document of the built library, for linters and client generators. */
import { openApiDocument } from 'relayscope'

console.log(JSON.stringify(openApiDocument(), null, 2))
