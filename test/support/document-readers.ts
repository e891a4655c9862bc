import { featureSources } from '../../src/app/features.generated.ts'
import { listFilesOfKinds } from '../../src/features/definition-files.ts'

/** The files with readers of all features, for a file process: of the build where that is tested. */
export const documentReaders = listFilesOfKinds(featureSources, 'reader').map(({ path }) => path)
