// Reads the key of an encrypted model from where --key says that it is: FILE, fd:N or env:NAME.
#pragma once

#include <string>

#include "sluice/model/key.h"

namespace sluice::cli {

/// Asked when an encrypted model is opened, not before. Empty for an empty text: there is no key. Its errors: kWrongKey where there is not
/// a key of 32 bytes (64 hex digits in a variable) at that place; kIo.
model::KeyCallback key_at(const std::string& place);

/// The 32 bytes of a key file. Throws Failure as above.
model::Key read_key_file(const std::string& path);

}  // namespace sluice::cli
