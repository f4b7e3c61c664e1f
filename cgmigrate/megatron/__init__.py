"""What megatron-core and its readers do with the settings: releases, names, captures."""
